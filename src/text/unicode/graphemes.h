// Extended grapheme clusters (Unicode Annex 29): user-perceived characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace heed {

// The size in bytes of the cluster at byte `at`; at least 1.
size_t grapheme_bytes(std::string_view text, size_t at);

}  // namespace heed
