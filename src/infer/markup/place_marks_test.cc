#include "infer/markup/place_marks.h"

#include <gtest/gtest.h>

#include "text/markup/html.h"
#include "text/unicode/words.h"

namespace heed {
namespace {

// Alignments of the words of two texts by their numbers: source, target.
std::vector<Alignment> links(const std::string& source, const std::string& target,
                             const std::vector<std::pair<size_t, size_t>>& pairs) {
  std::vector<Alignment> list;
  const std::vector<TextSpan> from = word_spans(source), to = word_spans(target);
  for (const auto& [s, t] : pairs) {
    list.push_back({.target = to.at(t), .source = from.at(s), .weight = 1});
  }
  return list;
}

std::string placed(const std::string& html, const std::string& target,
                   const std::vector<std::pair<size_t, size_t>>& pairs) {
  const MarkedText parsed = parse_html(html);
  EXPECT_EQ(parsed.blocks.size(), 1u);
  const TextBlock& block = parsed.blocks.at(0);
  std::string out;
  append_marked(out, html, block,
                {.text = target, .alignments = links(block.text, target, pairs), .placed = {}});
  return out;
}

TEST(PlaceMarks, FollowTheirWords) {
  EXPECT_EQ(placed("I <b>have</b> <i>seen</i> it", "Ich habe es gesehen",
                   {{0, 0}, {1, 1}, {2, 3}, {3, 2}}),
            "Ich <b>habe</b> es <i>gesehen</i>");
  // Siblings change their order.
  EXPECT_EQ(placed("<b>a</b> <i>b</i> c", "B A C", {{0, 1}, {1, 0}, {2, 2}}),
            "<i>B</i> <b>A</b> C");
}

TEST(PlaceMarks, StayNested) {
  EXPECT_EQ(placed("<b>a <i>b</i></b> c", "B C A", {{0, 2}, {1, 0}, {2, 1}}),
            "<b><i>B</i> C A</b>");
  EXPECT_EQ(placed("<b><i>a b</i></b>", "A B", {{0, 0}, {1, 1}}), "<b><i>A B</i></b>");
}

TEST(PlaceMarks, WithoutAlignments) {
  EXPECT_EQ(placed("<b>a b</b>", "A B", {}), "<b>A B</b>");
  const std::string out = placed("a <b>b</b> c", "A B C", {});
  EXPECT_NE(out.find("<b>"), std::string::npos) << out;
  EXPECT_LT(out.find("<b>"), out.find("</b>")) << out;
  EXPECT_EQ(placed("<b>a</b> <i>b</i>", "", {}), "<b></b><i></i>");
}

TEST(PlaceMarks, MarksWithoutWords) {
  EXPECT_EQ(placed("a<sup id=1></sup> b<wbr> <img src=x> c", "A B C", {{0, 0}, {1, 1}, {2, 2}}),
            "A<sup id=1></sup> B<wbr> <img src=x>C");
  EXPECT_EQ(placed("<img> a <img>", " A ", {{0, 0}}), " <img>A<img> ");
}

TEST(PlaceMarks, WithoutPartnersTheyKeepTheirSide) {
  EXPECT_EQ(placed("a <b>b", "A B", {{0, 0}, {1, 1}}), "A <b>B");
  EXPECT_EQ(placed("a</b> b", "A B", {{0, 0}, {1, 1}}), "A</b> B");
  EXPECT_EQ(placed("<b>a <i>b</b> c</i>", "A B C", {{0, 0}, {1, 1}, {2, 2}}),
            "<b>A <i>B</b> C</i>");
}

TEST(PlaceMarks, EscapesTheText) {
  EXPECT_EQ(placed("a &amp; <b>b</b>", "A & <B>\u00A0", {{0, 0}, {2, 3}}),
            "A &amp; &lt;<b>B</b>&gt;&nbsp;");
}

TEST(PlaceMarks, FixedPartsAreCopied) {
  const std::string html = "run <b><code>x &lt; y</code></b> now";
  const MarkedText parsed = parse_html(html);
  std::string out;
  std::vector<int64_t> positions;
  const std::vector<TextSpan> at{{9, 14}};
  const std::string target = "jetzt ja x < y";
  append_marked(out, html, parsed.blocks[0], {.text = target, .alignments = {}, .placed = at},
                &positions);
  EXPECT_NE(out.find("<code>x &lt; y</code>"), std::string::npos) << out;
  EXPECT_EQ(out.find("<b>"), out.rfind("<b>"));
  EXPECT_EQ(positions.back(), static_cast<int64_t>(out.size()));
}

TEST(PlaceMarks, DeepAndManyMarks) {
  constexpr int kTimes = 100000;
  for (const auto& [open, close] : {std::pair<std::string, std::string>{"<b>", "</b>"},
                                    {"<b>a ", "</b> c "},
                                    {"<b>", ""},
                                    {"", "</b>"},
                                    {"<b>a</b> ", ""},
                                    {"<img>", ""}}) {
    std::string html, target = "A B ";
    for (int i = 0; i < kTimes; ++i) html += open;
    html += "x ";
    for (int i = 0; i < kTimes; ++i) html += close;
    const MarkedText parsed = parse_html(html);
    if (parsed.blocks.empty()) continue;
    const TextBlock& block = parsed.blocks[0];
    std::string out;
    append_marked(out, html, block, {.text = target, .alignments = {}, .placed = {}});
    size_t marks = 0;
    for (const Mark& mark : block.marks)
      marks += static_cast<size_t>(mark.raw.end - mark.raw.begin);
    EXPECT_EQ(out.size(), marks + target.size());
  }
}

}  // namespace
}  // namespace heed
