// What a tokenizer read from any input must guarantee.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "heed/tokenizer.h"

namespace heed::fuzz {

// Ids in the vocabulary, spans in the text, encode() and encode_ids() equal.
inline void use(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  const Encoding encoding = tokenizer.encode(text, options);
  if (encoding.ids != tokenizer.encode_ids(text, options)) std::abort();
  if (encoding.offsets.size() != encoding.ids.size()) std::abort();
  for (const int32_t id : encoding.ids) {
    if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
    tokenizer.piece(id);
    tokenizer.begins_word(id);
  }
  for (const TextSpan& span : encoding.offsets) {
    if (span.begin < 0 || span.begin > span.end) std::abort();
    if (span.end > static_cast<int64_t>(text.size())) std::abort();
  }
  tokenizer.decode(encoding.ids, {.side = options.side});
  tokenizer.decode(encoding.ids, {.skip_special_tokens = false, .side = options.side});
  tokenizer.encode_pair(text, "b", options);
}

inline void use(const Tokenizer& tokenizer) {
  for (const std::string_view text : {"", "Hello, wörld's 12 x", " bb <s></s>[MASK]<x> \xFF▁a\n"}) {
    for (const TextSide side : {TextSide::source, TextSide::target}) {
      use(tokenizer, text, {.side = side});
    }
  }
}

}  // namespace heed::fuzz
