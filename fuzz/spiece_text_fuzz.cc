// Any text through small SentencePiece tokenizers, and through the byte tokenizer, which must
// round-trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "fuzz_spiece.h"
#include "heed/tokenizer.h"
#include "text/tokenizers/byte_tokenizer.h"
#include "text/tokenizers/char_tokenizer.h"
#include "text/tokenizers/spiece_tokenizer.h"

namespace {

std::vector<heed::TokenizerPtr> make_tokenizers() {
  std::vector<heed::TokenizerPtr> all;
  for (const int model_type : {1, 2}) {
    const std::string model = heed::fuzz::spiece_model(model_type, true);
    for (const char* family : {"T5Tokenizer", "LlamaTokenizer", "XLMRobertaTokenizer"}) {
      for (const bool legacy : {false, true}) {
        all.push_back(
            heed::make_spiece_tokenizer(model, {{"tokenizer_class", family}, {"legacy", legacy}}));
      }
    }
  }
  all.push_back(heed::make_char_tokenizer({.characters = heed::ascii_characters()}));
  return all;
}

void check(const heed::Tokenizer& tokenizer, std::string_view text) {
  const heed::Encoding e = tokenizer.encode(text);
  if (e.offsets.size() != e.ids.size() || tokenizer.encode_ids(text) != e.ids) std::abort();
  for (const heed::TextSpan& span : e.offsets) {
    if (span.begin < 0 || span.begin > span.end) std::abort();
    if (span.end > static_cast<int64_t>(text.size())) std::abort();
  }
  tokenizer.decode(e.ids);
  tokenizer.decode(e.ids, {.skip_special_tokens = false});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<heed::TokenizerPtr> tokenizers = make_tokenizers();
  static const heed::TokenizerPtr bytes = heed::make_byte_tokenizer();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const heed::TokenizerPtr& tokenizer : tokenizers) check(*tokenizer, text);
  check(*bytes, text);
  // "<pad>" and the like are special tokens: only other texts round-trip.
  if (text.find('<') == text.npos && bytes->decode(bytes->encode_ids(text)) != text) std::abort();
  return 0;
}
