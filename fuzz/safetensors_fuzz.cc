// Any bytes as a safetensors file: an ordinary Error, or tensors that round-trip.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz_tensors.h"
#include "heed/error.h"
#include "model/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    heed::fuzz::use(heed::read_safetensors(bytes, "input"));
  } catch (const heed::Error& error) {
    heed::fuzz::expect_ordinary(error);
  }
  return 0;
}
