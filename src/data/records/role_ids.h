// The special ids of an objective: from the options, otherwise from the tokenizer.
#pragma once

#include <cstdint>

#include "data/options.h"
#include "heed/tokenizer.h"

namespace heed {

struct RoleIds {
  int32_t start = -1;     // the decoder's first input
  int32_t begin = -1;     // of a document
  int32_t end = -1;       // of a document or a target
  int32_t mask = -1;      // replaces masked tokens
  int32_t classify = -1;  // before an encoder's text: [CLS] or <s>
  int32_t separate = -1;  // after each of an encoder's texts: [SEP] or </s>
};

// Throws invalid_argument, naming the option to set, when a required id is missing, or when an option
// is outside the vocabulary.
RoleIds resolve_role_ids(const ObjectiveOptions& objective, const Tokenizer& tokenizer);

}  // namespace heed
