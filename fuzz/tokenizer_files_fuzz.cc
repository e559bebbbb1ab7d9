// Any bytes as older tokenizer files: the first byte selects vocab.txt, vocab.json and merges.txt
// separated by a NUL, or the tokenizer.json of a char tokenizer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz_folder.h"
#include "heed/error.h"
#include "heed/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const heed::fuzz::ScratchFolder folder;
  folder.empty();
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned kind = data[0] % 3;
  if (kind == 0) {
    folder.write("vocab.txt", text);
  } else if (kind == 2) {
    folder.write("tokenizer_config.json", R"({"heed_type": "char"})");
    folder.write("tokenizer.json", text);
  } else {
    const auto [vocabulary, merges] = heed::fuzz::split_at_nul(text);
    folder.write("vocab.json", vocabulary);
    folder.write("merges.txt", merges);
  }
  try {
    const heed::TokenizerPtr tokenizer = heed::load_tokenizer(folder.path());
    const std::vector<int32_t> ids = tokenizer->encode_ids("Hello, wörld's 12 [MASK]\xFF x");
    tokenizer->decode(ids);
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
  return 0;
}
