// HTML as blocks of text and the tags inside them.
//
//   MarkedText document = parse_html("<p>Good <b>morning</b>.</p>");
//
// Block-level elements (p, div, li, td, h1, br …) delimit blocks. Inline elements are marks of their
// block. Copied as they are: comments, doctype, CDATA, script, style, pre, code, kbd, samp, var,
// svg, math, and elements with translate="no" or class="notranslate". Entities are decoded; those
// with an unknown name are copied. Outside of block-level elements a line break ends a block, so that
// a file of HTML lines has a translation of as many lines; inside it is a space.
//
// Any bytes are HTML: a '<' that begins no tag is text, tags without partners are marks without
// partners. Time is linear in the size, and nothing recurses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/markup/marked_text.h"

namespace heed {

MarkedText parse_html(std::string_view html);

// What Markdown shares.

// Appends the bytes [begin, end) of the builder's document, which is `html`, as HTML.
void parse_html_part(std::string_view html, size_t begin, size_t end, MarkedTextBuilder& builder);

struct HtmlTag {
  enum class Kind { start, end, other };  // other: comment, doctype, CDATA, <?…>
  Kind kind = Kind::other;
  std::string name;           // lower case
  size_t end = 0;             // the byte after it
  bool is_empty = false;      // <br>, or ends in "/>"
  bool is_untouched = false;  // translate="no" or class="notranslate"
};
// The tag at byte `at`, which has a '<'. None: the '<' is text, or the tag does not end.
std::optional<HtmlTag> read_html_tag(std::string_view html, size_t at);
// By the next characters alone: if false, read_html_tag() returns none at once.
bool may_be_html_tag(std::string_view html, size_t at);

struct HtmlEntity {
  std::string characters;  // empty: an unknown name
  size_t end = 0;
};
// The entity at byte `at`, which has a '&'.
std::optional<HtmlEntity> read_html_entity(std::string_view html, size_t at);

bool is_html_block(std::string_view name);  // of a block-level element

}  // namespace heed
