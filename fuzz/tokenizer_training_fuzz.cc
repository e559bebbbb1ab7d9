// Any bytes as training text of a tokenizer: the first byte selects the type, the second the size. Too
// little text is an ordinary Error; a trained tokenizer is usable.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "use_tokenizer.h"

namespace {

// Training SentencePiece takes a second, so only two byte values select it.
const char* type_of(uint8_t choice) {
  if (choice == 'b') return "bpe";
  if (choice == 'u') return "unigram";
  constexpr std::array<const char*, 3> kOurs{"byte-bpe", "wordpiece", "char"};
  return kOurs[choice % kOurs.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heed;
  constexpr size_t kChoices = 2;
  if (size < kChoices) return 0;
  static const fuzz::ScratchFolder folder;
  const std::string text =
      folder.write("text", {reinterpret_cast<const char*>(data) + kChoices, size - kChoices});
  const TokenizerTraining training{.type = type_of(data[0]),
                                   .vocabulary = 4 + 2 * data[1],
                                   .files = {text},
                                   .lowercase = data[0] >= 128,
                                   .special_tokens = {"<x>"},
                                   .threads = 1};
  fuzz::expect_ordinary([&] { fuzz::use(*train_tokenizer(training)); });
  return 0;
}
