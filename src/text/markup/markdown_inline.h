// The inline part of Markdown: emphasis, links, code spans, HTML tags, escapes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/markup/marked_text.h"

namespace heed {

// A line break inside a paragraph, with the syntax before the next line's text ("> ").
struct MarkdownBreak {
  size_t begin = 0, end = 0;
  bool is_hard = false;  // ends the block of text
};

// Normalized labels of link definitions.
using LinkLabels = std::unordered_set<std::string>;
std::string link_label(std::string_view label);

// Appends the paragraph [begin, end) of `markdown`, the builder's document. `breaks` are in order.
void parse_markdown_inline(std::string_view markdown, size_t begin, size_t end,
                           const std::vector<MarkdownBreak>& breaks, const LinkLabels& labels,
                           MarkedTextBuilder& builder);

}  // namespace heed
