#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/model.h"

namespace heed {

// A prompt as decoder-only models read it: without the end that a template puts after a text, which
// would say that nothing follows. Of an empty text the token that begins one, if there is any.
std::vector<int32_t> prompt_ids(const Model& model, std::string_view text);

}  // namespace heed
