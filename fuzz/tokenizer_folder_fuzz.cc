// Any bytes as a tokenizer's settings: the first byte selects the tokenizer, the rest is
// tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json, separated by
// NULs.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "fuzz_spiece.h"
#include "use_tokenizer.h"

namespace {

using namespace heed;

constexpr const char* kVocabulary = R"({"h": 0, "e": 1, "he": 2, "<s>": 3, "</s>": 4, "<unk>": 5,
"<pad>": 6, "b": 7, "<mask>": 8})";

void write_tokenizer(const fuzz::ScratchFolder& folder, int kind) {
  switch (kind) {
    case 0:
    case 1:
      folder.write("spiece.model", fuzz::spiece_model(kind + 1, /*rules=*/true));
      break;
    case 2:
      folder.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nhello\n##x\n,\n");
      break;
    case 3:
      folder.write("vocab.json", kVocabulary);
      folder.write("merges.txt", "#version: 0.2\nh e\n");
      break;
    case 4:
      folder.write("tokenizer.json", R"({"model": {"type": "WordPiece", "unk_token": "x",
"continuing_subword_prefix": "##", "vocab": {"x": 0, "h": 1, "##e": 2, "[MASK]": 3}}})");
      break;
    case 5:
      folder.write("vocab.json", kVocabulary);
      folder.write("source.spm", fuzz::spiece_model(1, /*rules=*/false));
      folder.write("target.spm", fuzz::spiece_model(2, /*rules=*/false));
      break;
    default:;  // the byte tokenizer needs no file
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const fuzz::ScratchFolder folder;
  folder.empty();
  write_tokenizer(folder, data[0] % 7);
  const auto files = fuzz::split_at_nuls<4>({reinterpret_cast<const char*>(data) + 1, size - 1});
  constexpr std::array<const char*, 4> kNames{"tokenizer_config.json", "special_tokens_map.json",
                                              "added_tokens.json", "config.json"};
  for (size_t i = 0; i < files.size(); ++i) {
    if (!files[i].empty()) folder.write(kNames[i], files[i]);
  }
  fuzz::expect_ordinary([] { fuzz::use(*load_tokenizer(folder.path())); });
  return 0;
}
