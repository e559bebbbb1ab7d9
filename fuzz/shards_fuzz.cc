// Any bytes as the index of a sharded model with well-formed shards.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "model/files/safetensors.h"

namespace {

using namespace heed;

// The shards that the seeds name. One tensor is in both: the index selects one.
void write_shards(const fuzz::ScratchFolder& folder) {
  const std::vector<float> floats = {1, 2, 3, 4};
  const auto bytes = std::as_bytes(std::span(floats));
  const TensorView a{"a", DType::f32, {2, 2}, bytes}, b{"b", DType::f32, {4}, bytes};
  const TensorView both{"both", DType::f32, {1}, bytes.first(4)};
  write_safetensors(folder.path() + "/1.safetensors", std::vector{a, both});
  write_safetensors(folder.path() + "/2.safetensors", std::vector{b, both});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFolder folder;
  static const bool is_ready = (write_shards(folder), true);
  if (!is_ready) return 0;
  folder.write("model.safetensors.index.json", {reinterpret_cast<const char*>(data), size});
  fuzz::expect_ordinary([] {
    const TensorFile file = TensorFile::open(folder.path());
    for (const TensorView& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) std::abort();
    }
  });
  return 0;
}
