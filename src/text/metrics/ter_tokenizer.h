// The words that TER compares: Tercom's normalization, as in sacreBLEU.
#pragma once

#include <string>
#include <string_view>

#include "heed/metrics.h"

namespace heed {

// Words separated by white space.
std::string tokenize_for_ter(std::string_view text, const TerOptions& options);

}  // namespace heed
