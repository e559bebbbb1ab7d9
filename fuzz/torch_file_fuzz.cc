// Any bytes as a pytorch_model.bin and, because a fuzzer seldom keeps a ZIP archive intact, as the
// pickle in one.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fuzz_tensors.h"
#include "heed/error.h"
#include "model/files/torch_file.h"
#include "model/files/torch_testing.h"

namespace {

void read(std::span<const std::byte> file) {
  try {
    heed::fuzz::use(heed::read_torch_file(file, "input"));
  } catch (const heed::Error& error) {
    heed::fuzz::expect_ordinary(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with("PK")) {
    read(heed::as_bytes(input));
  } else {
    // The storages that the seeds use.
    const std::string file = heed::make_torch_file(input, {std::string(24, 'x'), "four"});
    read(heed::as_bytes(file));
  }
  return 0;
}
