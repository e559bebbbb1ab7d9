// Searches over a model that is a function: the logits of the next token from the ids so far.
#include "infer/search/text_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "heed/error.h"
#include "model/config.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::Not;
using Ids = std::vector<int32_t>;

constexpr int kVocabulary = 6;
constexpr int32_t kEnd = 0, kStart = 5;

// Log-probabilities up to a constant, from the new ids.
using Lm = std::function<std::vector<float>(std::span<const int32_t>)>;

SearchPlan plan_of(const SearchOptions& o, int64_t most = 6) {
  SearchPlan plan;
  plan.options = o;
  plan.options.end_ids = {kEnd};
  plan.max_new_tokens = most, plan.min_new_tokens = o.min_new_tokens;
  return plan;
}

std::vector<Hypothesis> search(SearchPlan plan, const Lm& lm) {
  const KvLayout layout = kv_layout(ModelConfig{});
  KvCache cache(layout, {.memory_bytes = 1 << 24});
  TextSearch search(std::move(plan), {kStart});
  SearchScratch scratch;
  while (!search.is_finished()) {
    search.prepare();
    for (size_t i = 0; i < search.sequences().size(); ++i) {
      search.choose(i, lm(std::span(search.sequences()[i].ids).subspan(1)), scratch);
    }
    search.advance(cache);
  }
  EXPECT_EQ(cache.used_blocks(), 0);
  return std::move(search).take();
}

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// 1 looks better than 2, but only 2 leads to a likely end.
std::vector<float> garden_path(std::span<const int32_t> ids) {
  if (ids.empty()) return logs({.01, .5, .4, .03, .03, .03});
  if (ids[0] == 1) return logs({.1, .2, .2, .2, .2, .1});
  return logs({.9, .02, .02, .02, .02, .02});
}

TEST(TextSearch, GreedyTakesTheLikeliest) {
  const auto answers = search(plan_of({}, 3), garden_path);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers[0].ids, ElementsAre(kStart, 1, 1, 1));
  EXPECT_EQ(answers[0].finish, FinishReason::length);
  EXPECT_NEAR(answers[0].sum, std::log(.5 * .2 * .2), 1e-5);
}

// The log-sum-exp over the vocabulary is skipped unless scores are requested.
TEST(TextSearch, ScoresOnlyWhereTheyAreAskedFor) {
  for (const bool sample : {false, true}) {
    SearchPlan plan = plan_of({.sample = sample, .seed = 3}, 3);
    const auto scored = search(plan, garden_path);
    plan.scores = false;
    const auto plain = search(plan, garden_path);
    EXPECT_EQ(plain[0].ids, scored[0].ids);
    EXPECT_LT(scored[0].score, 0);
    EXPECT_EQ(plain[0].score, 0);
    EXPECT_TRUE(scored[0].token_scores.empty());
    plan.options.token_scores = true;
    const auto by_token = search(plan, garden_path);
    EXPECT_EQ(by_token[0].ids, scored[0].ids);
    EXPECT_EQ(by_token[0].sum, scored[0].sum);
    EXPECT_EQ(by_token[0].token_scores.size(), by_token[0].ids.size() - 1);
  }
  // A beam cannot do without.
  SearchPlan plan = plan_of({.beam = 3});
  plan.scores = false;
  EXPECT_EQ(search(plan, garden_path)[0].score, search(plan_of({.beam = 3}), garden_path)[0].score);
}

TEST(TextSearch, ABeamFindsTheLikelierText) {
  const auto answers = search(plan_of({.beam = 3, .nbest = 2, .token_scores = true}), garden_path);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[0].ids, ElementsAre(kStart, 2, kEnd));
  EXPECT_EQ(answers[0].finish, FinishReason::end);
  EXPECT_NEAR(answers[0].score, std::log(.4 * .9) / 2, 1e-5);
  EXPECT_GE(answers[0].score, answers[1].score);
  ASSERT_EQ(answers[0].token_scores.size(), 2u);
  EXPECT_NEAR(answers[0].token_scores[1], std::log(.9), 1e-5);
}

TEST(TextSearch, AsManyAnswersAsBeamsAndNoneTwice) {
  const auto answers = search(plan_of({.beam = 4, .nbest = 4}), garden_path);
  ASSERT_EQ(answers.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(answers[i].ids, answers[k].ids);
  }
}

TEST(TextSearch, MinAndForcedTokens) {
  SearchOptions o{.beam = 2, .min_new_tokens = 3};
  o.forced_first_id = 4, o.forced_last_id = 3;
  for (const int beam : {1, 2}) {
    o.beam = beam;
    const auto answers = search(plan_of(o, 4), garden_path);
    ASSERT_FALSE(answers.empty());
    const Ids& ids = answers[0].ids;
    EXPECT_EQ(ids.size(), 5u) << beam;
    EXPECT_EQ(ids[1], 4);
    EXPECT_EQ(ids[4], 3);
    EXPECT_EQ(answers[0].finish, FinishReason::length);
  }
}

// Not std::ranges::search(): clang 14 cannot compile its subrange.
bool contains(const Ids& ids, const Ids& phrase) {
  return std::search(ids.begin(), ids.end(), phrase.begin(), phrase.end()) != ids.end();
}

TEST(TextSearch, BannedPhrasesDoNotOccur) {
  for (const int beam : {1, 3}) {
    SearchPlan plan = plan_of({.beam = beam}, 5);
    plan.banned = {2};
    plan.banned_phrases = {{1, 1}};
    for (const Hypothesis& h : search(std::move(plan), garden_path)) {
      EXPECT_THAT(h.ids, Not(testing::Contains(2)));
      EXPECT_FALSE(contains(h.ids, {1, 1}));
    }
  }
}

TEST(TextSearch, RequiredPhrasesOccur) {
  for (const int64_t most : {4, 6, 12}) {
    SearchPlan plan = plan_of({.beam = 4, .nbest = 4}, most);
    plan.required = {{3, 4}, {2}};
    const auto answers = search(std::move(plan), garden_path);
    ASSERT_FALSE(answers.empty());
    for (const Hypothesis& h : answers) {
      EXPECT_TRUE(contains(h.ids, {3, 4})) << most;
      EXPECT_THAT(h.ids, testing::Contains(2)) << most;
    }
  }
}

// A phrase whose first token is likely and whose second is not is begun again and again.
TEST(TextSearch, RequiredPhrasesAreNotBrokenOffTooLate) {
  const auto reluctant = [](std::span<const int32_t>) {
    return logs({.001, .3, .1, .5, .0001, .09});
  };
  for (const int32_t last : {-1, kEnd}) {
    SearchOptions options{.beam = 4, .nbest = 4};
    options.forced_last_id = last;
    SearchPlan plan = plan_of(options, 8);
    plan.required = {{3, 4}};
    for (const Hypothesis& h : search(std::move(plan), reluctant)) {
      EXPECT_TRUE(contains(h.ids, {3, 4})) << testing::PrintToString(h.ids);
    }
  }
}

TEST(TextSearch, StopsWhereThePlanSays) {
  for (const int beam : {1, 2}) {
    SearchPlan plan = plan_of({.beam = beam, .early_stopping = EarlyStopping::yes}, 6);
    plan.min_new_tokens = 6;
    plan.stops = [](std::span<const int32_t> ids) { return ids.size() == 2; };
    const auto answers = search(std::move(plan), garden_path);
    EXPECT_EQ(answers[0].ids.size(), 3u);
    EXPECT_EQ(answers[0].finish, FinishReason::stop);
  }
}

TEST(TextSearch, SamplesAreIndependentAndRepeatable) {
  SearchOptions o{.nbest = 20, .sample = true, .seed = 3};
  const auto first = search(plan_of(o), garden_path), second = search(plan_of(o), garden_path);
  ASSERT_EQ(first.size(), 20u);
  bool any_differs = false;
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(first[i].ids, second[i].ids);
    any_differs = any_differs || first[i].ids != first[0].ids;
  }
  EXPECT_TRUE(any_differs);
}

TEST(TextSearch, NoTokenLeftEndsTheText) {
  for (const int beam : {1, 2}) {
    SearchPlan plan = plan_of({.beam = beam});
    plan.banned = {0, 1, 2, 3, 4, 5};
    const auto answers = search(std::move(plan), garden_path);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_THAT(answers[0].ids, ElementsAre(kStart));
  }
}

}  // namespace
}  // namespace heed
