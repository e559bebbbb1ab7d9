// Any bytes as a model: config.json, a NUL, and its safetensors, f32 or quantized. A loaded model is as
// large as its file, and round-trips.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "model/files/safetensors.h"
#include "model/network.h"

namespace {

using namespace heed;

TensorFile tensors_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return TensorFile::from_bytes({bytes.begin(), bytes.end()}, "input");
}

void expect_same(const HfTensors& a, const HfTensors& b) {
  const bool same = std::ranges::equal(a.views, b.views, [](const auto& x, const auto& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
           std::ranges::equal(x.bytes, y.bytes);
  });
  if (!same) std::abort();
}

void load(const std::string& config, const TensorFile& tensors, WeightForm form) {
  const NetworkLoadOptions options{.form = form};
  const Network network = Network::from_files(config, tensors, "input", options);
  static const fuzz::ScratchFolder folder;
  network.save(folder.path());
  const Network again = Network::load(folder.path(), options);
  const auto written = [](const Network& n) {
    return hf_tensors(n.hugging_face(), n.parameters(), DType::f32);
  };
  expect_same(written(network), written(again));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [config, file] = fuzz::split_at_nul({reinterpret_cast<const char*>(data), size});
  fuzz::expect_ordinary([&, config = std::string(config), file = file] {
    const TensorFile tensors = tensors_of(file);
    for (const WeightForm form : {WeightForm::stored, WeightForm::trainable}) {
      load(config, tensors, form);
    }
  });
  return 0;
}
