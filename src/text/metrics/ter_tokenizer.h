// What TER counts as a word: Tercom's normalisation, as sacreBLEU has it.
#pragma once

#include <string>
#include <string_view>

#include "heed/metrics.h"

namespace heed {

// Words with white space between them.
std::string tokenize_for_ter(std::string_view text, const TerOptions& options);

}  // namespace heed
