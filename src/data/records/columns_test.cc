#include "data/records/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/file_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;

using Columns = std::vector<std::string>;

TEST(Columns, SplitsAtTabsAndSpaces) {
  Columns columns;
  split_tabs("a b\t\tc", columns);
  EXPECT_THAT(columns, ElementsAre("a b", "", "c"));
  split_tabs("", columns);
  EXPECT_THAT(columns, ElementsAre(""));
  split_spaces("  a \t b  ", columns);
  EXPECT_THAT(columns, ElementsAre("a", "b"));
}

TEST(Columns, ReadsQuotesByRfc4180) {
  Columns columns;
  EXPECT_EQ(split_csv(R"(a,"b, ""c""",,d)", columns), CsvEnd::complete);
  EXPECT_THAT(columns, ElementsAre("a", "b, \"c\"", "", "d"));
  EXPECT_EQ(split_csv(R"(5" nails,x)", columns), CsvEnd::complete);  // a quote inside is literal
  EXPECT_THAT(columns, ElementsAre("5\" nails", "x"));
  EXPECT_EQ(split_csv(R"(a,"b)", columns), CsvEnd::open_quote);  // continues in the next line
  EXPECT_EQ(split_csv(R"("a "good" film",x)", columns), CsvEnd::stray_text);
}

TEST(Columns, DefaultsFollowTheObjective) {
  const TableColumns pair = choose_columns({}, Objective::translation, std::nullopt);
  EXPECT_EQ(pair.first, 0u);
  EXPECT_EQ(pair.second, 1u);
  EXPECT_FALSE(pair.label);
  EXPECT_EQ(pair.needed(), 2u);
  const TableColumns one = choose_columns({}, Objective::classification, std::nullopt);
  EXPECT_FALSE(one.second);
  EXPECT_EQ(one.label, 1u);
  CorpusOptions two;
  two.second_column = "2";
  EXPECT_EQ(choose_columns(two, Objective::regression, std::nullopt).label, 2u);
}

TEST(Columns, AreFoundByName) {
  CorpusOptions corpus;
  corpus.first_column = "sentence";
  corpus.label_column = "gold";
  EXPECT_TRUE(names_columns(corpus));
  const TableColumns columns =
      choose_columns(corpus, Objective::classification, Columns{"id", "gold", "sentence"});
  EXPECT_EQ(columns.first, 2u);
  EXPECT_EQ(columns.label, 1u);
  expect_error(ErrorCode::invalid_argument, "the column \"sentence\"",
               [&] { choose_columns(corpus, Objective::classification, Columns{"a"}); });
  corpus.first_column = "0";
  expect_error(ErrorCode::invalid_argument, "numbered from 1",
               [&] { choose_columns(corpus, Objective::causal_lm, std::nullopt); });
}

TEST(JsonColumns, ReadsNestedFields) {
  CorpusOptions corpus;
  corpus.first_column = "translation.en";
  corpus.second_column = "translation.de";
  const JsonColumns columns(corpus, Objective::translation);
  JsonColumns::Values values;
  EXPECT_EQ(columns.read(R"({"translation": {"en": "yes", "de": "ja"}})", values), "");
  EXPECT_EQ(values.first, "yes");
  EXPECT_EQ(values.second, "ja");
  for (const auto& [bad, why] : {
           std::pair{"", "not valid JSON"},
           {"[]", "must be a JSON object, got array"},
           {"{", "not valid JSON"},
           {"{}", "there is no field \"translation.en\", the object has none"},
           {R"({"translation": "en"})",
            "there is no field \"translation.en\", the object has translation"},
           {R"({"translation": {"en": 1}})",
            "there is no field \"translation.de\", the object has translation"},
           {R"({"translation": {"en": ["a"], "de": "b"}})",
            "the field \"translation.en\" must be a string or a number, got array"},
       }) {
    EXPECT_EQ(columns.read(bad, values), why) << bad;
  }
}

TEST(JsonColumns, ReadsNumbersAndListsOfWords) {
  JsonColumns::Values values;
  EXPECT_EQ(JsonColumns({}, Objective::regression).read(R"({"text": "a", "label": 2.5})", values),
            "");
  EXPECT_EQ(values.label, "2.5");
  const JsonColumns tags({}, Objective::tagging);
  EXPECT_EQ(tags.read(R"({"words": ["a", "b"], "tags": ["X", 3]})", values), "");
  EXPECT_THAT(values.tags, ElementsAre("X", "3"));
  EXPECT_EQ(tags.read(R"({"words": ["a", "b"], "tags": ["X"]})", values),
            "\"words\" has 2 words, \"tags\" 1 tags");
  EXPECT_EQ(tags.read(R"({"words": "a b", "tags": ["X"]})", values),
            "the field \"words\" must be a list of strings, got string");
}

}  // namespace
}  // namespace heed
