// Any bytes as a config.json, of Hugging Face or of Heed: an ordinary Error, or a valid model that
// round-trips.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "fuzz_tensors.h"
#include "heed/error.h"
#include "model/hugging_face/hf_tensor_map.h"
#include "model/hugging_face/hugging_face.h"

namespace {

using namespace heed;

// A file without tensors: 8 bytes of length and an empty object.
const TensorFile& no_tensors() {
  static const TensorFile file = [] {
    std::vector<std::byte> image(10);
    image[0] = std::byte{2}, image[8] = std::byte{'{'}, image[9] = std::byte{'}'};
    return TensorFile::from_bytes(std::move(image), "no tensors");
  }();
  return file;
}

void read_hugging_face(const std::string& text) {
  HfConfig hf;
  try {
    hf = hf_read_config(text, "input", no_tensors());
  } catch (const Error& error) {
    return fuzz::expect_ordinary(error);
  }
  if (!validate(hf.config).empty()) std::abort();
  const std::string written = hf_write_config(hf);
  const HfConfig again = hf_read_config(written, "written", no_tensors());
  if (again.architecture != hf.architecture) std::abort();
  if (declare(again.config).size() != declare(hf.config).size()) std::abort();
  if (hf_tensor_names(again) != hf_tensor_names(hf)) std::abort();
}

void read_model_config(const std::string& text) {
  ModelConfig config;
  try {
    config = config_from_json(text, {}, "input");
  } catch (const Error& error) {
    return fuzz::expect_ordinary(error);
  }
  if (!(config_from_json(to_json(config), {}, "written") == config)) std::abort();
  if (validate(config).empty()) hf_equivalent(config);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_hugging_face(text);
  read_model_config(text);
  return 0;
}
