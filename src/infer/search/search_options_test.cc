// The list of search options: its checks, the rules that follow from what is set, and the table of
// docs/search-options.md, which HEED_UPDATE_DOCS=1 rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "heed/engine.h"
#include "heed/error.h"
#include "heed/search.h"
#include "infer/search/option_ranges.h"

namespace heed {
namespace {

using testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(SearchOptions, CheckReportsEveryValueOutOfRange) {
  EXPECT_EQ(message_of([] { check(SearchOptions{}); }), "");
  const std::string message = message_of(
      [] { check(SearchOptions{.beam = 0, .min_new_tokens = -1, .repetition_penalty = NAN}); });
  EXPECT_THAT(message, HasSubstr("beam must be between 1 and 1024, got 0"));
  EXPECT_THAT(message, HasSubstr("min_new_tokens must be between 0 and"));
  EXPECT_THAT(message, HasSubstr("repetition_penalty must be between 0.01 and 100, got nan"));
  EXPECT_THAT(message_of([] { check(SearchOptions{.nbest = 2}); }),
              HasSubstr("nbest must be at most beam"));
}

TEST(SearchOptions, SamplingOptionsAreCheckedWhenSampling) {
  const SearchOptions wrong{.temperature = -1, .top_k = -2, .top_p = 2, .min_p = 2};
  EXPECT_EQ(message_of([&] { check(wrong); }), "");
  SearchOptions sampled = wrong;
  sampled.sample = true;
  for (const char* name : {"temperature", "top_k", "top_p", "min_p"}) {
    EXPECT_THAT(message_of([&] { check(sampled); }), HasSubstr(name));
  }
}

// Overrides with these options at values that differ from the defaults.
SearchOverrides given(const std::set<std::string>& names) {
  SearchOverrides overrides;
  overrides.values = {.beam = 3, .nbest = 5, .sample = true, .temperature = 0.5, .top_k = 7};
  for (const std::string& name : names) overrides.set(name);
  return overrides;
}

TEST(SearchOptions, TheKindOfSearchFollowsFromWhatIsSet) {
  const SearchOptions greedy, beam{.beam = 4}, sampling{.sample = true};
  // More answers need more beams, unless they are samples.
  EXPECT_EQ(apply(beam, given({"nbest"})).beam, 5);
  EXPECT_EQ(apply(sampling, given({"nbest"})).beam, 1);
  EXPECT_EQ(apply(beam, given({"beam", "nbest"})).beam, 3);  // check() refuses it
  // A temperature means sampling; a beam size ends it.
  EXPECT_TRUE(apply(beam, given({"temperature"})).sample);
  EXPECT_EQ(apply(beam, given({"temperature"})).beam, 1);
  EXPECT_TRUE(apply(greedy, given({"top_k", "nbest"})).sample);
  EXPECT_FALSE(apply(sampling, given({"beam"})).sample);
  SearchOverrides one_beam = given({"beam", "temperature"});
  one_beam.values.beam = 1;
  EXPECT_TRUE(apply(greedy, one_beam).sample);
  // `sample` itself decides.
  EXPECT_TRUE(apply(beam, given({"sample"})).sample);
  EXPECT_EQ(apply(beam, given({"sample"})).beam, 4);
}

TEST(SearchOptions, GreedyBeatsTheDefaultsAndContradictsOtherSearches) {
  SearchOverrides greedy = given({});
  greedy.greedy = true;
  EXPECT_EQ(apply({.beam = 4}, greedy).beam, 1);
  EXPECT_FALSE(apply({.sample = true}, greedy).sample);
  greedy.set("temperature");
  EXPECT_THAT(message_of([&] { apply({}, greedy); }), HasSubstr("greedy and temperature"));
  EXPECT_THAT(message_of([] {
                apply({}, given({"beam", "top_k"}));
              }),
              HasSubstr("beam 3 and top_k"));
  // Temperature 0 is argmax, which a beam does not contradict.
  SearchOverrides argmax = given({"beam", "temperature"});
  argmax.values.temperature = 0;
  EXPECT_FALSE(apply({}, argmax).sample);
}

TEST(SearchOptions, ListsAreAppended) {
  SearchOverrides overrides;
  overrides.values.banned = {"b"};
  EXPECT_EQ(apply({.banned = {"a"}}, overrides).banned.size(), 1U);
  overrides.set("banned");
  EXPECT_EQ(apply({.banned = {"a"}}, overrides).banned, (std::vector<std::string>{"a", "b"}));
}

// ---- docs/search-options.md --------------------------------------------------------------------

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

template <class Field>
std::string values_of(const OptionInfo& info, const Field& field) {
  const auto range = [&](const std::string& kind, const std::string& value) {
    const bool has_min = info.min > std::numeric_limits<double>::lowest();
    const bool has_max = info.max < std::numeric_limits<int32_t>::max();
    const auto end = [](double number) { return shown_number(number); };
    return kind +
           (has_min && has_max ? " " + end(info.min) + " to " + end(info.max)
            : has_min          ? " ≥ " + end(info.min)
                               : "") +
           " (" + value + ")";
  };
  if constexpr (std::is_same_v<Field, bool>) {
    return field ? "bool (true)" : "bool (false)";
  } else if constexpr (std::is_enum_v<Field>) {
    return choices_of<Field>() + " (" + std::string(name_of(field)) + ")";
  } else if constexpr (std::is_arithmetic_v<Field>) {
    return range(std::is_integral_v<Field> ? "int" : "number", shown_number(field));
  } else if constexpr (std::is_same_v<Field, LogitBias>) {
    return "token id → " + range("number", "none");
  } else {
    return "texts (none)";
  }
}

template <class Options>
std::string table_of() {
  std::string table =
      "| option | command | HTTP | generation_config.json | values (default) | meaning |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  Options options;
  for_each_option(options, [&](const OptionInfo& info, const auto& field) {
    table += "| " + code(info.name) + " | " + code(flag_of(info)) + " | " +
             code(http_name_of(info)) + " | " + code(info.hugging_face ? info.hugging_face : "") +
             " | " + values_of(info, field) + " | " + info.help + " |\n";
  });
  return table;
}

TEST(SearchOptions, DocumentationHasTheTable) {
  const std::string path = "docs/search-options.md";
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t begin = text.find("| option |"), end = text.find("\n\n", begin);
  ASSERT_NE(begin, std::string::npos) << path;
  const std::string table = table_of<SearchOptions>();
  if (std::getenv("HEED_UPDATE_DOCS")) {
    text.replace(begin, end + 1 - begin, table);
    std::ofstream(path) << text;
  } else {
    EXPECT_EQ(text.substr(begin, end + 1 - begin), table)
        << "run infer_test with HEED_UPDATE_DOCS=1 to update " << path;
  }
}

// Samples differ from call to call unless the caller sets the seed.
TEST(SearchOptions, ASeedIsDrawnWhereNoneIsSet) {
  SearchOverrides given;
  given.values.temperature = 0.8, given.set("temperature");
  EXPECT_NE(apply({}, given).seed, apply({}, given).seed);
  EXPECT_LE(apply({}, given).seed, UINT32_MAX);
  given.values.seed = 7, given.set("seed");
  EXPECT_EQ(apply({}, given).seed, 7u);
  // Nothing is random here.
  EXPECT_EQ(apply({}, {}).seed, 0u);
  SearchOverrides argmax;
  argmax.set("temperature"), argmax.values.temperature = 0;
  EXPECT_EQ(apply({}, argmax).seed, 0u);
  // Sampling by the model's files.
  SearchOptions defaults;
  defaults.sample = true;
  EXPECT_NE(apply(defaults, {}).seed, apply(defaults, {}).seed);
}

}  // namespace
}  // namespace heed
