#include "serve/routes/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/http/http_error.h"

namespace heed::serve {
namespace {

struct Body {
  std::string name, kind = "red";
  bool flag = false;
  int64_t count = 3;
  double share = 0.5;
  std::optional<int64_t> seed;
  Texts texts;
  Prompts prompts;
  bool inner = false;
  TextPairs pairs;
};

void describe(Fields& fields, Body& body) {
  fields.text({.name = "name", .about = "what it is called", .required = true}, body.name);
  fields.text({.name = "kind", .choices = {"red", "green"}}, body.kind);
  fields.flag({.name = "flag"}, body.flag);
  fields.integer({.name = "count", .min = 1, .max = 9}, body.count);
  fields.number({.name = "share", .min = 0, .max = 1}, body.share);
  fields.integer({.name = "seed"}, body.seed);
  fields.texts({.name = "texts", .max = 3}, body.texts);
  fields.prompts({.name = "prompts"}, body.prompts);
  fields.pairs({.name = "pairs"}, body.pairs);
  fields.only({.name = "bias"}, 0);
  fields.ignored({.name = "user"});
  fields.inside({.name = "options"},
                [&](Fields& inner) { inner.flag({.name = "inner"}, body.inner); });
}

Body read(const Json& json, bool is_form = false) {
  const FieldLimits limits{.text_bytes = 10, .texts = 4, .ids = 5};
  Body body;
  FieldReader reader(json, limits, is_form);
  describe(reader, body);
  reader.finish();
  return body;
}

template <class Function>
void expect_refused(int status, const std::string& field, const std::string& message,
                    const Function& function) {
  try {
    function();
    ADD_FAILURE() << "was taken: " << message;
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status(), status);
    EXPECT_EQ(error.field(), field);
    EXPECT_THAT(error.what(), testing::HasSubstr(message));
  }
}

void expect_refused(const Json& json, const std::string& field, const std::string& message) {
  expect_refused(400, field, message, [&] { read(json); });
}

TEST(FieldsTest, ReadsEveryKind) {
  const Body body = read({{"name", "x"},
                          {"kind", "green"},
                          {"flag", true},
                          {"count", 5.0},
                          {"share", 1},
                          {"seed", 7},
                          {"texts", {"a", "b"}},
                          {"prompts", {{1, 2}, {3}}},
                          {"bias", 0},
                          {"user", {{"any", "thing"}}},
                          {"options", {{"inner", true}}}});
  EXPECT_EQ(body.kind, "green");
  EXPECT_TRUE(body.flag && body.inner);
  EXPECT_EQ(body.count, 5);
  EXPECT_EQ(body.share, 1);
  EXPECT_EQ(body.seed, 7);
  EXPECT_THAT(body.texts.values, testing::ElementsAre("a", "b"));
  EXPECT_EQ(body.prompts.values[0].ids, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(body.prompts.is_list);
}

TEST(FieldsTest, HasDefaults) {
  const Body body = read({{"name", "x"}, {"count", nullptr}, {"prompts", {1, 2}}, {"texts", "t"}});
  EXPECT_EQ(body.count, 3);
  EXPECT_FALSE(body.seed);
  EXPECT_FALSE(body.texts.is_list);
  ASSERT_EQ(body.prompts.values.size(), 1U);
  EXPECT_EQ(body.prompts.values[0].ids, (std::vector<int32_t>{1, 2}));
}

TEST(FieldsTest, NamesTheFieldThatIsWrong) {
  expect_refused(Json::object(), "name", "name is missing: what it is called");
  expect_refused({{"name", 5}}, "name", "name must be a string, got the number 5");
  expect_refused({{"name", "x"}, {"kind", "blue"}}, "kind", "one of red, green");
  expect_refused({{"name", "x"}, {"flag", "true"}}, "flag", "true or false, got a string");
  expect_refused({{"name", "x"}, {"count", 10}}, "count", "between 1 and 9, got 10");
  expect_refused({{"name", "x"}, {"count", 1.5}}, "count", "an integer");
  expect_refused({{"name", "x"}, {"count", 1e300}}, "count", "an integer");
  expect_refused({{"name", "x"}, {"share", -0.1}}, "share", "between 0 and 1, got -0.1");
  expect_refused({{"name", "x"}, {"texts", {"a", 1}}}, "texts", "a string");
  expect_refused({{"name", "x"}, {"texts", {"a", "b", "c", "d"}}}, "texts", "at most 3");
  expect_refused({{"name", "x"}, {"prompts", {1, -2}}}, "prompts", "token ids");
  expect_refused({{"name", "x"}, {"prompts", {1, 1, 1, 1, 1, 1}}}, "prompts", "at most 5");
  expect_refused({{"name", "x"}, {"bias", 1}}, "bias", "not supported otherwise");
  expect_refused({{"name", "x"}, {"cuont", 1}}, "cuont", "did you mean 'count'?");
  expect_refused({{"name", "x"}, {"options", {{"iner", true}}}}, "options.iner", "options.inner");
  expect_refused(413, "name", "at most 10 bytes", [] { read({{"name", "more than ten"}}); });
}

TEST(FieldsTest, ReadsForms) {
  const Body body = read(parse_form("name=a%20b+c&flag=true&count=4&texts=x&texts=y"), true);
  EXPECT_EQ(body.name, "a b c");
  EXPECT_TRUE(body.flag);
  EXPECT_EQ(body.count, 4);
  EXPECT_THAT(body.texts.values, testing::ElementsAre("x", "y"));
  expect_refused(400, "", "hexadecimal", [] { parse_form("a=%4"); });
  expect_refused(400, "", "UTF-8", [] { parse_form("a=%ff"); });
}

TEST(FieldsTest, RefusesWhatIsNoJsonObject) {
  const auto refused = [](const std::string& body, const std::string& message) {
    expect_refused(400, "", message, [&] { parse_body(body, 16); });
  };
  refused("", "must be valid JSON");
  refused("{\"a\":", "must be valid JSON");
  refused("[1]", "got a list");
  refused("{\"a\": \"\xff\"}", "UTF-8");
  refused("{\"a\": 1e999}", "out of range");
  refused("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
          "at most 16 levels");
  EXPECT_EQ(parse_body("{\"a\": [[1]]}", 16)["a"][0][0], 1);
}

TEST(FieldsTest, MakesASchemaOfTheSameList) {
  FieldSchema fields;
  Body body;
  describe(fields, body);
  const Json schema = fields.schema();
  EXPECT_EQ(schema["required"], Json::array({"name"}));
  EXPECT_EQ(schema["properties"]["count"]["maximum"], 9);
  EXPECT_EQ(schema["properties"]["kind"]["enum"], Json::array({"red", "green"}));
  EXPECT_EQ(schema["properties"]["options"]["properties"]["inner"]["type"], "boolean");
}

TEST(FieldsTest, PairsAreAnObjectOfTexts) {
  const Body body = read({{"name", "x"}, {"pairs", {{"b", "1"}, {"a", "2"}}}});
  EXPECT_EQ(body.pairs, (TextPairs{{"b", "1"}, {"a", "2"}}));
  expect_refused({{"name", "x"}, {"pairs", {"a", "b"}}}, "pairs", "an object of strings");
  expect_refused({{"name", "x"}, {"pairs", {{"a", 1}}}}, "pairs", "a string");
  expect_refused({{"name", "x"}, {"pairs", {{"", "b"}}}}, "pairs", "without empty keys");
}

}  // namespace
}  // namespace heed::serve
