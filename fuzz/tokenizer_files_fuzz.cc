// Any bytes as the older tokenizer files: the first byte says which, the rest is vocab.txt, or
// vocab.json and merges.txt with a NUL between.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "heed/error.h"
#include "heed/tokenizer.h"

namespace {

void write(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const std::filesystem::path kFolder =
      std::filesystem::temp_directory_path() / ("heed_fuzz." + std::to_string(getpid()));
  std::filesystem::remove_all(kFolder);
  std::filesystem::create_directories(kFolder);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    write(kFolder / "vocab.txt", text);
  } else {
    const size_t cut = std::min(text.find('\0'), text.size());
    write(kFolder / "vocab.json", text.substr(0, cut));
    write(kFolder / "merges.txt", text.substr(std::min(cut + 1, text.size())));
  }
  try {
    const heed::TokenizerPtr tokenizer = heed::load_tokenizer(kFolder);
    const std::vector<int32_t> ids = tokenizer->encode_ids("Hello, wörld's 12 [MASK]\xFF x");
    tokenizer->decode(ids);
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
  return 0;
}
