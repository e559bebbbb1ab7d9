#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

class TranslateRoutesTest : public ServeTest {};

TEST_F(TranslateRoutesTest, AnswersATextWithATextAndAListWithAList) {
  start({"en-de"});
  const Json one =
      client().post("/translate", {{"q", "the cat"}, {"source", "en"}, {"target", "de"}}).json();
  ASSERT_TRUE(one["translatedText"].is_string()) << one;
  const Json two =
      client()
          .post("/translate",
                {{"q", {"the cat", "", "she runs"}}, {"source", "auto"}, {"target", "de"}})
          .json();
  ASSERT_EQ(two["translatedText"].size(), 3U) << two;
  EXPECT_EQ(two["translatedText"][0], one["translatedText"]);
  EXPECT_EQ(two["translatedText"][1], "");
  EXPECT_EQ(two["detectedLanguage"][0]["language"], "en");
}

TEST_F(TranslateRoutesTest, TakesFormsAsCurlSendsThem) {
  start({"en-de"});
  const Json expected =
      client()
          .post("/translate", {{"q", "the cat is a cat"}, {"source", "en"}, {"target", "de"}})
          .json();
  const Received form = client().post_text("/translate", "q=the+cat+is%20a+cat&source=en&target=de",
                                           "application/x-www-form-urlencoded");
  EXPECT_EQ(form.json(), expected) << form.body;
  const Received parts = client().post_text(
      "/translate",
      "--x\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nthe cat is a cat\r\n"
      "--x\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n"
      "--x\r\nContent-Disposition: form-data; name=\"target\"\r\n\r\nde\r\n--x--\r\n",
      "multipart/form-data; boundary=x");
  EXPECT_EQ(parts.json(), expected) << parts.body;
}

TEST_F(TranslateRoutesTest, GivesAlternativesAndAlignments) {
  start({"en-de"});
  const Json json = client()
                        .post("/translate", {{"q", "the cat sat on the mat"},
                                             {"target", "de"},
                                             {"alternatives", 2},
                                             {"alignments", true}})
                        .json();
  ASSERT_EQ(json["alternatives"].size(), 2U) << json;
  ASSERT_EQ(json["scores"].size(), 3U);
  EXPECT_GE(json["scores"][0].get<double>(), json["scores"][1].get<double>());
  for (const Json& alignment : json["alignments"]) {
    EXPECT_LE(alignment["source"][1].get<size_t>(), 22U);
    EXPECT_LE(alignment["target"][1].get<size_t>(),
              json["translatedText"].get<std::string>().size());
  }
}

TEST_F(TranslateRoutesTest, UsesTerms) {
  start({"en-de"});
  const Json json = client()
                        .post("/translate", {{"q", "the Cat sat"},
                                             {"target", "de"},
                                             {"terms", {{"cat", "new york"}, {"horse", "fast"}}}})
                        .json();
  EXPECT_THAT(json["translatedText"].get<std::string>(), testing::HasSubstr("new york")) << json;
  EXPECT_EQ(json["terms"],
            Json::array({{{"source", "cat"}, {"target", "new york"}, {"used", true}}}));
}

TEST_F(TranslateRoutesTest, KeepsTheTagsOfHtml) {
  start({"en-de"});
  const auto translated = [&](const std::string& q, const std::string& format) {
    const Json json =
        client()
            .post("/translate", {{"q", q}, {"source", "en"}, {"target", "de"}, {"format", format}})
            .json();
    return json["translatedText"].get<std::string>();
  };
  const std::string plain = translated("the cat sat", "text");
  EXPECT_EQ(translated("<p class=a>the cat sat</p><!-- x -->", "html"),
            "<p class=a>" + plain + "</p><!-- x -->");
  EXPECT_EQ(translated("# the cat sat\n\n```\nthe cat\n```\n", "markdown"),
            "# " + plain + "\n\n```\nthe cat\n```\n");
}

TEST_F(TranslateRoutesTest, RefusesInTheirForm) {
  start({"en-de", "gpt"});
  const auto refused = [&](const Json& call, int status, const std::string& message) {
    const Received answer = client().post("/translate", call);
    EXPECT_EQ(answer.status, status) << answer.body;
    ASSERT_TRUE(answer.json()["error"].is_string()) << answer.body;
    EXPECT_THAT(answer.json()["error"].get<std::string>(), testing::HasSubstr(message));
  };
  refused({{"source", "en"}, {"target", "de"}}, 400, "q is missing");
  refused({{"q", "x"}, {"source", "en"}}, 400, "target is missing");
  refused({{"q", "x"}, {"source", "en"}, {"target", "fr"}}, 400, "fr is not supported");
  refused({{"q", "x"}, {"source", "fr"}, {"target", "de"}}, 400, "fr is not supported");
  refused({{"q", "x"}, {"source", "de"}, {"target", "en"}}, 400, "de to en is not supported");
  refused({{"q", "x"}, {"target", "de"}, {"format", "rtf"}}, 400, "format");
  refused({{"q", "x"}, {"model", "gpt"}}, 400, "does not translate");
}

TEST_F(TranslateRoutesTest, ListsLanguages) {
  start({"en-de"});
  const Json json = client().get("/languages").json();
  ASSERT_EQ(json.size(), 2U) << json;
  EXPECT_EQ(json[0], (Json{{"code", "de"}, {"name", "German"}, {"targets", Json::array()}}));
  EXPECT_EQ(json[1], (Json{{"code", "en"}, {"name", "English"}, {"targets", {"de"}}}));
}

TEST_F(TranslateRoutesTest, TakesTheKeyInTheBody) {
  start({"en-de"}, {.api_keys = {"secret"}});
  Json call{{"q", "the cat"}, {"target", "de"}};
  EXPECT_EQ(client().post("/translate", call).status, 403);
  call["api_key"] = "wrong";
  EXPECT_EQ(client().post("/translate", call).status, 403);
  call["api_key"] = "secret";
  EXPECT_EQ(client().post("/translate", call).status, 200);
}

}  // namespace
}  // namespace heed::serve
