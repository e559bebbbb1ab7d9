#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "heed/attend.h"

namespace heed {
namespace {

using testing::HasSubstr;
using testing::Not;

AttentionView small_view() {
  AttentionView view;
  view.source = {{5, "</script><b>"}, {6, "a&b"}, {7, "\"c\""}};
  view.target = {{8, "x"}, {9, "y"}};
  view.layers = {{.kind = AttentionKind::cross,
                  .layer = 0,
                  .heads = 2,
                  .queries = 2,
                  .keys = 3,
                  .probabilities = {1, 0, 0, 0.5, 0.5, 0, 0, 0.25, 0.75, 0.01f, 0.98f, 0.01f}}};
  return view;
}

TEST(AttentionPictures, ThePageNeedsNothingElse) {
  const std::string page = attention_html(small_view(), "A </title> & more");
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
  EXPECT_THAT(page, Not(HasSubstr("http")));  // no request goes anywhere
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  // What the texts say cannot end the script.
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>"));
  const size_t begin = page.find("type=\"application/json\">") + 24;
  const auto data =
      nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["source"][0], "</script><b>");
  // 255, 0, 0, 128, 128, 0, 0, 64, 191, 3, 250, 3
  EXPECT_EQ(data["layers"][0]["bytes"], "/wAAgIAAAEC/A/oD");
}

TEST(AttentionPictures, TheDrawingHasACellForEachThatCounts) {
  const std::string svg = attention_svg(small_view(), "A & B");
  size_t cells = 0;
  for (size_t at = 0; (at = svg.find("class=\"cell\"", at)) != svg.npos; ++at) ++cells;
  EXPECT_EQ(cells, size_t{6});
  EXPECT_THAT(svg, HasSubstr("A &amp; B"));
  EXPECT_THAT(svg, HasSubstr("&lt;/script&gt;"));
  EXPECT_THAT(svg, HasSubstr("opacity=\"0.75\""));
  EXPECT_THAT(svg, HasSubstr("cross attention"));
  EXPECT_TRUE(svg.starts_with("<svg "));
}

TEST(AttentionPictures, TheDrawingShortensLongLabels) {
  AttentionView view = small_view();
  view.source[1].text = "Donaudampfschifffahrtsgesellschaft";
  view.target[0].text = "ääääääääääääääääääää";
  const std::string svg = attention_svg(view, "");
  EXPECT_THAT(svg, HasSubstr(">Donaudampfschi…<"));
  EXPECT_THAT(svg, HasSubstr(">ääääääääääääää…<"));
}

TEST(AttentionPictures, TheNumbersAreAllThere) {
  const auto json = nlohmann::json::parse(attention_json(small_view()));
  EXPECT_EQ(json["layers"][0]["heads"][1][0][2], 0.75);
  EXPECT_EQ(json["target"][1]["id"], 9);
  EXPECT_EQ(json["layers"][0]["kind"], "cross");
}

// Exact, so that a reader has the same floats; or short, for those who look.
TEST(AttentionPictures, TheNumbersHaveAsManyDigitsAsAsked) {
  AttentionView view = small_view();
  view.layers[0].probabilities = {0.123456789f, 1e-7f, 0.00012345f, 1, 0, 0.3333333433f,
                                  0.5f,         0,     0,           0, 0, 0};
  const auto exact = nlohmann::json::parse(attention_json(view))["layers"][0]["heads"][0];
  EXPECT_EQ(exact[0][0].get<float>(), 0.123456789f);
  EXPECT_EQ(exact[0][1].get<float>(), 1e-7f);
  const std::string text = attention_json(view, 4);
  EXPECT_THAT(text, HasSubstr("[[0.1235,0,0.0001234],[1,0,0.3333]]"));
  EXPECT_EQ(nlohmann::json::parse(text)["layers"][0]["layer"], 0);
  view.layers.clear();
  EXPECT_EQ(nlohmann::json::parse(attention_json(view))["layers"].size(), size_t{0});
}

}  // namespace
}  // namespace heed
