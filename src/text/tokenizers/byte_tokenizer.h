// Bytes as tokens, as ByT5 has them: pad 0, </s> 1, <unk> 2, byte b is b + 3, and then the
// sentinels <extra_id_0> … in rising order.
//
// Those names are recognised in a text; pad, </s> and <unk> take the white space beside them along.
// </s> is appended unless the text already ends in it. Any bytes survive encode and decode.
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
