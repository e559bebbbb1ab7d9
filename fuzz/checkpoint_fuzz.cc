// Any bytes as a checkpoint: state.json, a NUL, and training.safetensors of a small model.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "fuzz_model.h"
#include "train/run/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heed;
  static const fuzz::ScratchFolder folder;
  static Network network = [] {
    Network made(fuzz::smallest_config(Family::decoder_only));
    made.add_gradients();
    return made;
  }();
  static Optimizer optimizer(network.parameters(), {.ema_decay = 0.5});
  const auto [state, tensors] = fuzz::split_at_nul({reinterpret_cast<const char*>(data), size});
  folder.write("step-1/state.json", state);
  folder.write("step-1/training.safetensors", tensors);
  fuzz::expect_ordinary([] {
    const std::vector<Checkpoint> list = Checkpoints(folder.path()).list();
    if (list.size() != 1) std::abort();
    Checkpoints::load(list[0], network, optimizer);
    load_average({list[0], list[0]}, network.parameters());
  });
  return 0;
}
