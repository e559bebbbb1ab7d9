// A document with markup (HTML, Markdown) as blocks of plain text, with the markup beside them.
//
//   MarkedText document = parse_html("<p>Good <b>morning</b>.</p>");
//   document.blocks[0].text;    // "Good morning."
//   document.blocks[0].marks;   // <b> at byte 5, </b> at byte 12
//   document.parts;             // "<p>" as it is, block 0, "</p>" as it is
//
// A caller that replaces the text of a block writes its marks at other places; the rest of the document
// is copied. All spans are bytes of the document, unless it says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// Markup inside a block that is no part of its text.
struct Mark {
  enum class Kind {
    open,   // <b>
    close,  // </b>
    empty,  // <img>, a comment, a script
  };
  Kind kind = Kind::empty;
  int64_t at = 0;  // the byte of the block's text that follows
  TextSpan raw{};
  // Index of the other mark of a pair; -1 for the rest. Pairs are well nested: in "<b><i></b></i>"
  // only the first and the third belong together.
  int64_t partner = -1;
};

// A part of a block's text that must not be translated: <code>x</code>, with the text "x".
struct FixedText {
  TextSpan text{};  // bytes of the block's text
  TextSpan raw{};   // replaces it in the output
};

enum class Markup { html, markdown };

struct TextBlock {
  Markup markup = Markup::html;  // in which the text is written
  std::string text;              // without markup; entities and escapes are decoded
  std::vector<int64_t> sources;  // where each byte of `text` is from, and where the block ends
  std::vector<Mark> marks;       // in order
  std::vector<FixedText> fixed;  // in order, disjoint
  std::string literals;  // Markdown: characters of markup that the text has without an escape
};

struct MarkedText {
  // The whole document, in order: bytes to copy, or a block.
  struct Part {
    TextSpan raw{};
    int64_t block = -1;  // -1: bytes to copy
  };
  std::vector<Part> parts;
  std::vector<TextBlock> blocks;  // each has more than white space
};

// Appends the character at byte `at` of `text` as it is written in the markup: "&lt;", "\*".
// `is_first`: it begins its block. Returns its size in `text`.
size_t append_escaped(std::string& out, std::string_view text, size_t at, const TextBlock& block,
                      bool is_first);

// Builds a MarkedText; calls must be in the order of the document and cover all of it.
class MarkedTextBuilder {
 public:
  MarkedTextBuilder(std::string_view document, Markup markup)
      : document_(document), markup_(markup) {}

  // ---- Inside a block; these begin one ----
  void text(size_t begin, size_t end);  // bytes as they are
  // Characters that are written as an entity or an escape at `begin`.
  void decoded(std::string_view characters, size_t begin);
  // White space with a line break that is like a space: one space between visible text.
  void soft_break(size_t begin, size_t end);
  // `name` pairs open and close marks.
  void mark(Mark::Kind kind, std::string_view name, size_t begin, size_t end);
  void fixed(std::string_view plain, size_t begin, size_t end);
  void literal(char c);  // see TextBlock::literals

  // ---- Between blocks ----
  void end_block(size_t at);            // at: the byte after the block
  void copy(size_t begin, size_t end);  // ends the block

  // Of the blocks that end from now on; returns that before.
  Markup set_markup(Markup markup) { return std::exchange(markup_, markup); }
  MarkedText finish() &&;

 private:
  void begin_block(size_t at);
  void flush_break(bool is_visible);
  void append(std::string_view characters, size_t source);
  void copy_span(size_t begin, size_t end);

  std::string_view document_;
  Markup markup_;
  MarkedText result_;
  bool has_block_ = false, is_visible_ = false;
  size_t block_begin_ = 0;
  TextBlock block_;
  std::string break_;  // white space with a line break that was not written yet
  size_t break_begin_ = 0;
  std::vector<std::pair<std::string, int64_t>> open_;    // names and indices of open marks
  std::unordered_map<std::string, int64_t> open_names_;  // how many of each
};

}  // namespace heed
