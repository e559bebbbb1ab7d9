// Extended grapheme clusters (Unicode Annex 29): what a reader takes for one character.
#pragma once

#include <cstddef>
#include <string_view>

namespace heed {

// How many bytes the cluster that begins at byte `at` has; at least 1.
size_t grapheme_bytes(std::string_view text, size_t at);

}  // namespace heed
