#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/model.h"

namespace heed {

// The ids of a prompt for decoder-only models: without the end token that the template may add,
// which would end the answer at once. An empty text is the begin token, if there is one.
std::vector<int32_t> prompt_ids(const Model& model, std::string_view text);

}  // namespace heed
