// Which ids play which part in an objective: the options', else the tokenizer's.
#pragma once

#include <cstdint>

#include "data/options.h"
#include "heed/tokenizer.h"

namespace heed {

struct RoleIds {
  int32_t start = -1;     // what a decoder reads first
  int32_t begin = -1;     // of a document
  int32_t end = -1;       // of a document, of a target
  int32_t mask = -1;      // in place of what was hidden
  int32_t classify = -1;  // before an encoder's text: [CLS] or <s>
  int32_t separate = -1;  // after each of an encoder's texts: [SEP] or </s>
};

// Throws invalid_argument, saying which option to set, when the objective needs one that neither
// has, or when an option is outside the vocabulary.
RoleIds resolve_role_ids(const ObjectiveOptions& objective, const Tokenizer& tokenizer);

}  // namespace heed
