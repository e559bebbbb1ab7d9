// Shows a parsed document in tests.
#pragma once

#include <string>
#include <vector>

#include "text/markup/marked_text.h"

namespace heed {

// Each part: bytes that are copied as they are; a block in brackets, with its marks in their places,
// those with a partner followed by its number, and its fixed parts as {raw=text}.
inline std::vector<std::string> show(const std::string& document, const MarkedText& parsed) {
  const auto raw = [&](TextSpan s) {
    return document.substr(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin));
  };
  std::vector<std::string> parts;
  for (const MarkedText::Part& part : parsed.parts) {
    if (part.block < 0) {
      parts.push_back(raw(part.raw));
      continue;
    }
    const TextBlock& block = parsed.blocks[static_cast<size_t>(part.block)];
    std::string text = "[";
    size_t mark = 0, fixed = 0;
    for (size_t i = 0; i <= block.text.size(); ++i) {
      if (fixed > 0 && block.fixed[fixed - 1].text.end == static_cast<int64_t>(i)) text += "}";
      for (; mark < block.marks.size() && block.marks[mark].at == static_cast<int64_t>(i); ++mark) {
        text += raw(block.marks[mark].raw);
        if (block.marks[mark].partner >= 0) {
          text += "(" + std::to_string(block.marks[mark].partner) + ")";
        }
      }
      if (fixed < block.fixed.size() && block.fixed[fixed].text.begin == static_cast<int64_t>(i)) {
        text += "{" + raw(block.fixed[fixed++].raw) + "=";
      }
      if (i < block.text.size()) text += block.text[i];
    }
    parts.push_back(text + "]");
  }
  return parts;
}

}  // namespace heed
