#include "text/markup/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/markup/marked_text_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> shown(const std::string& text) { return show(text, parse_markdown(text)); }

TEST(Markdown, Emphasis) {
  EXPECT_THAT(shown("a *b* **c** _d_ ~~e~~"),
              ElementsAre("[a *(1)b*(0) **(3)c**(2) _(5)d_(4) ~~(7)e~~(6)]"));
  EXPECT_THAT(shown("***a** b*"), ElementsAre("[*(3)**(2)a**(1) b*(0)]"));
  EXPECT_THAT(shown("2 * 3 * 4, snake_case_name, a* b, \\*c\\*"),
              ElementsAre("[2 * 3 * 4, snake_case_name, a* b, *c*]"));
}

TEST(Markdown, LinksAndImages) {
  EXPECT_THAT(shown("see [the *page*](https://a.org/x_(y) \"title\") and ![alt](b.png)"),
              ElementsAre("[see [(3)the *(2)page*(1)](https://a.org/x_(y) \"title\")(0) and "
                          "![(5)alt](b.png)(4)]"));
  EXPECT_THAT(shown("[a][ref], [b], <https://c.org> and note[^1]\n\n[b]: https://b.org \"B\"\n"),
              ElementsAre("[[(1)a][ref](0), {[b]=b}, {<https://c.org>=https://c.org} and note[^1]]",
                          "\n\n[b]: https://b.org \"B\"\n"));
  EXPECT_THAT(shown("[TODO] and a](b"), ElementsAre("[[TODO] and a](b]"));
}

TEST(Markdown, Code) {
  EXPECT_THAT(shown("run `a *b*` and ``c ` d``"),
              ElementsAre("[run {`a *b*`=a *b*} and {``c ` d``=c ` d}]"));
  EXPECT_THAT(shown("a\n\n```sh\n# x\n```\n\n    indented\n\nb `"),
              ElementsAre("[a]", "\n\n```sh\n# x\n```\n\n    indented\n\n", "[b `]"));
}

TEST(Markdown, Blocks) {
  EXPECT_THAT(shown("# One #\n\nTwo\nthree  \nfour\n"),
              ElementsAre("# ", "[One]", " #\n\n", "[Two three]", "  \n", "[four]", "\n"));
  EXPECT_THAT(shown("- a\n- [x] b\n  c\n\n1. d\n> e\n> f\n\nTitle\n=====\n---\n"),
              ElementsAre("- ", "[a]", "\n- [x] ", "[b c]", "\n\n1. ", "[d]", "\n> ", "[e f]",
                          "\n\n", "[Title]", "\n=====\n---\n"));
  EXPECT_THAT(shown("---\ntitle: x\n---\na\n"), ElementsAre("---\ntitle: x\n---\n", "[a]", "\n"));
}

TEST(Markdown, Tables) {
  EXPECT_THAT(shown("| One | *Two* |\n| --- | :-: |\n| a \\| b | `c` |\nd\n"),
              ElementsAre("| ", "[One]", " | ", "[*(1)Two*(0)]", " |\n| --- | :-: |\n| ", "[a | b]",
                          " | ", "[{`c`=c}]", " |\n", "[d]", "\n"));
}

TEST(Markdown, Html) {
  EXPECT_THAT(
      shown("<div align=\"center\">\n  <b>A</b> &amp; b\n</div>\n\nc <kbd>x</kbd> <i>d</i>\n"),
      ElementsAre("<div align=\"center\">", "[\n  <b>(1)A</b>(0) & b\n]", "</div>\n\n",
                  "[c {<kbd>x</kbd>=x} <i>(1)d</i>(0)]", "\n"));
  EXPECT_THAT(shown("<!-- a\n\nb -->\n\nc"), ElementsAre("<!-- a\n\nb -->\n\n", "[c]"));
}

TEST(Markdown, EscapesWhatWouldBeMarkup) {
  const MarkedText parsed = parse_markdown("a\n\nb * c");
  const auto written = [&](size_t block, const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      at += append_escaped(out, text, at, parsed.blocks[block], at == 0);
    }
    return out;
  };
  EXPECT_EQ(written(0, "x * y_z `a` [b] <c> # d"), "x \\* y_z \\`a\\` \\[b\\] \\<c> # d");
  EXPECT_EQ(written(0, "# a"), "\\# a");
  EXPECT_EQ(written(0, "- a"), "\\- a");
  EXPECT_EQ(written(1, "x * y"), "x * y");  // the source has one without an escape
}

TEST(Markdown, HostileInput) {
  constexpr int kTimes = 200000;
  for (const char* part :
       {"*",        "**a",     "_",        "*a_",     "[",   "![",     "]",   "[a](", "[a](<",
        "[a](x \"", "`",       "``a`",     "<",       "<b>", "<code>", "~~a", "> ",   "- ",
        "1. ",      "|",       "|a\n|-\n", "\\",      "&",   "[a]: ",  "[^",  "#",    "\n",
        "a\n",      "<a b=\"", "</",       "<div>\n", "<a:", "[a]["}) {
    std::string text;
    for (int i = 0; i < kTimes; ++i) text += part;
    const MarkedText parsed = parse_markdown(text);
    EXPECT_LE(parsed.blocks.size(), text.size());
  }
}

}  // namespace
}  // namespace heed
