// Any bytes as the ids that `heed forward` runs: the first byte selects the model.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "fuzz_model.h"
#include "heed/model_files.h"
#include "model/network.h"

namespace {

using namespace heed;

constexpr size_t kModels = 5;

ModelConfig config_of(size_t model) {
  if (model == 0) return fuzz::smallest_config(Family::encoder_decoder);
  if (model == 1) return fuzz::smallest_config(Family::decoder_only);
  ModelConfig config = fuzz::smallest_config(Family::encoder_only);
  config.token_types = 2;
  if (model == 3) config.head = Head::regression, config.labels = 1;
  if (model == 4) config.head = Head::token_classifier, config.labels = 3;
  return config;
}

std::string model_folder(const fuzz::ScratchFolder& folder, size_t model) {
  return folder.path() + "/" + std::to_string(model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const fuzz::ScratchFolder folder;
  static const bool is_ready = [] {
    for (size_t i = 0; i < kModels; ++i) Network(config_of(i)).save(model_folder(folder, i));
    return true;
  }();
  if (!is_ready) return 0;
  const std::string inputs =
      folder.write("inputs.json", {reinterpret_cast<const char*>(data) + 1, size - 1});
  fuzz::expect_ordinary([&] {
    run_forward(model_folder(folder, data[0] % kModels),
                {.inputs = inputs, .attention = true, .threads = 1});
  });
  return 0;
}
