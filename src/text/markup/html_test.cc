#include "text/markup/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/markup/marked_text_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> shown(const std::string& html) { return show(html, parse_html(html)); }

TEST(Html, BlocksAndInlineTags) {
  EXPECT_THAT(shown("<p>Good <b>morning</b>.</p><div>You<br>there</div>"),
              ElementsAre("<p>", "[Good <b>(1)morning</b>(0).]", "</p><div>", "[You]", "<br>",
                          "[there]", "</div>"));
  EXPECT_THAT(shown("no tags"), ElementsAre("[no tags]"));
  EXPECT_THAT(shown(""), IsEmpty());
}

TEST(Html, WhatIsNotTranslated) {
  EXPECT_THAT(shown("<!DOCTYPE html><style>p > a {}</style>a<!-- <b> -->b"),
              ElementsAre("[<!DOCTYPE html><style>p > a {}</style>a<!-- <b> -->b]"));
  EXPECT_THAT(shown("Run <code>a &amp; <i>b</i></code>!"),
              ElementsAre("[Run {<code>a &amp; <i>b</i></code>=a & b}!]"));
  EXPECT_THAT(
      shown("<p translate=\"no\">x</p><span class='a notranslate'>y</span> z"),
      ElementsAre("<p translate=\"no\">x</p>", "[{<span class='a notranslate'>y</span>=y} z]"));
  EXPECT_THAT(shown("<pre>a\nb</pre>c<SCRIPT>if (a</b) '</script'</ScRiPt >d"),
              ElementsAre("<pre>a\nb</pre>", "[c<SCRIPT>if (a</b) '</script'</ScRiPt >d]"));
  EXPECT_THAT(shown("a<span translate=no>b<span>c</span>d</span>e"),
              ElementsAre("[a{<span translate=no>b<span>c</span>d</span>=bcd}e]"));
}

TEST(Html, AttributesMayHaveAnything) {
  EXPECT_THAT(shown("<a title='a > b' href=x/>link</a>"),
              ElementsAre("[<a title='a > b' href=x/>(1)link</a>(0)]"));
  EXPECT_THAT(shown("a<x id=\"1\"/>b<br/>c"), ElementsAre("[a<x id=\"1\"/>b]", "<br/>", "[c]"));
}

TEST(Html, Entities) {
  EXPECT_EQ(parse_html("&lt;b&gt; &eacute;&#233;&#xE9;&nbsp;&hearts; AT&T").blocks[0].text,
            "<b> ééé\u00A0♥ AT&T");
  EXPECT_THAT(shown("a &Unknown; b &#0; c"),
              ElementsAre("[a {&Unknown;=&Unknown;} b {&#0;=&#0;} c]"));
}

TEST(Html, LineBreaks) {
  // Outside of blocks a line is a block, inside a line break is a space.
  EXPECT_THAT(shown("one\n<b>two</b>\n"), ElementsAre("[one]", "\n", "[<b>(1)two</b>(0)]", "\n"));
  EXPECT_THAT(shown("<p>\n  one\n  <b>two</b>\n</p>"),
              ElementsAre("<p>", "[\n  one<b>(1) two</b>(0)\n]", "</p>"));
}

TEST(Html, MalformedInputKeepsItsTags) {
  EXPECT_THAT(shown("<b>a<i>b</b>c</i>"), ElementsAre("[<b>(2)a<i>b</b>(0)c</i>]"));
  EXPECT_THAT(shown("a < b <3 </ <b"), ElementsAre("[a < b <3 </ <b]"));
  EXPECT_THAT(shown("x</b><b>y"), ElementsAre("[x</b><b>y]"));
  EXPECT_THAT(shown("a<!-- b <b>c</b>"), ElementsAre("[a<!-- b <b>c</b>]"));
  EXPECT_THAT(shown("<code>never closed <b>x</b>"), ElementsAre("<code>never closed <b>x</b>"));
}

// Time is linear: these would take hours otherwise.
TEST(Html, HostileInput) {
  constexpr int kTimes = 300000;
  for (const char* part :
       {"<", "<b>", "</b>", "<b></i>", "<a b=\"", "<a b='", "<!--", "</", "&", "<p>", "<script>",
        "<pre>", "<span translate=no>", "<!", "<a ", "\n", "&amp"}) {
    std::string html;
    for (int i = 0; i < kTimes; ++i) html += part;
    html += "x>";
    const MarkedText parsed = parse_html(html);
    EXPECT_LE(parsed.blocks.size(), html.size());
  }
  const std::string wide = "<a x=\"" + std::string(1 << 20, 'y') + "\">z</a>";
  EXPECT_EQ(parse_html(wide).blocks[0].text, "z");
}

}  // namespace
}  // namespace heed
