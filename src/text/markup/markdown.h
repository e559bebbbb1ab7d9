// Markdown (CommonMark with tables, strikethrough and footnotes) as blocks of text and their marks.
//
//   MarkedText document = parse_markdown("# Good *morning*\n");   // text "Good morning", * at 5, 12
//
// Emphasis, strikethrough, links and images are marks: the text between is part of the block, the
// destination is not. Copied as they are: code spans and blocks, HTML tags, autolinks, link
// definitions, front matter, and the syntax of headings, lists, quotes and tables. The lines of a
// paragraph become one line. Pages of HTML inside are parsed as HTML.
//
// Any bytes are Markdown. Time is linear in the size, and nothing recurses.
#pragma once

#include <string_view>

#include "text/markup/marked_text.h"

namespace heed {

MarkedText parse_markdown(std::string_view markdown);

}  // namespace heed
