// A text made from another, and where each of its bytes came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct MappedText {
  std::string text;
  // The source's position for each byte and, last, for the end; empty: the same positions.
  std::vector<int64_t> source;

  int64_t source_position(size_t position) const {
    return source.empty() ? static_cast<int64_t>(position) : source[position];
  }
};

// U+FFFD for whatever is not UTF-8 (each of Unicode's "maximal subparts").
MappedText map_repaired(std::string_view text);

// `to` for each `from`, and `prefix`, which came from position 0, before it all.
MappedText map_replaced(MappedText text, std::string_view from, std::string_view to,
                        std::string_view prefix = {});

}  // namespace heed
