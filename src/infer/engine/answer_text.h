#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/model.h"

namespace heed {

// The text of an answer's ids, cut before the first stop string. Of decoder-only models it is
// without the prompt, the first `prompt_tokens` ids.
std::string answer_text(const Model& model, std::span<const int32_t> ids, size_t prompt_tokens,
                        const std::vector<std::string>& stop);

}  // namespace heed
