// A rewritten text with the source offset of each byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct MappedText {
  std::string text;
  // The source offset of each byte and, last, of the end; empty: identical offsets.
  std::vector<int64_t> source;

  int64_t source_position(size_t position) const {
    return source.empty() ? static_cast<int64_t>(position) : source[position];
  }
};

// Replaces invalid UTF-8 by U+FFFD, one for each of Unicode's "maximal subparts".
MappedText map_repaired(std::string_view text);

// Replaces each `from` by `to`, and inserts `prefix`, with source offset 0, at the start.
MappedText map_replaced(MappedText text, std::string_view from, std::string_view to,
                        std::string_view prefix = {});

}  // namespace heed
