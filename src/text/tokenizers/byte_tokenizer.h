// ByT5's byte tokenizer: pad 0, </s> 1, <unk> 2, byte b is b + 3, then the sentinels <extra_id_0> …
// in ascending order.
//
// Special tokens are recognized in a text; pad, </s> and <unk> strip the white space beside them.
// </s> is appended unless the text already ends in it. Any bytes round-trip.
#pragma once

#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

class TokenizerFolder;

struct ByteTokenizerOptions {
  int extra_ids = 125;
  std::vector<std::string> special_tokens{};  // after the sentinels
};

TokenizerPtr make_byte_tokenizer(const ByteTokenizerOptions& options = {});
TokenizerPtr load_byte_tokenizer(const TokenizerFolder& folder);

}  // namespace heed
