#include "infer/search/token_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "heed/error.h"
#include "infer/engine/engine_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;

constexpr float kBanned = -std::numeric_limits<float>::infinity();

// Scores after the rules of `options`, of a sequence with `prompt_tokens` before the new ones.
std::vector<float> changed(std::vector<float> scores, const SearchOptions& options,
                           const std::vector<int32_t>& ids, size_t prompt_tokens = 0) {
  static TokenScratch scratch;  // reused: apply() must leave it clean
  apply({.options = &options, .ids = ids, .prompt_tokens = prompt_tokens}, scores, scratch);
  return scores;
}

TEST(TokenRules, AreSetByAnyOption) {
  const SearchOptions none, some{.repetition_penalty = 1.1};
  EXPECT_FALSE(TokenRules{.options = &none}.are_set());
  EXPECT_FALSE(TokenRules{}.are_set());
  EXPECT_TRUE(TokenRules{.options = &some}.are_set());
  EXPECT_TRUE(TokenRules{.forced = 0}.are_set());
}

TEST(TokenRules, RepetitionPenaltyAppliesOnceToPromptAndAnswer) {
  const std::vector<int32_t> ids{1, 0, 1, 0, 0, 77};
  const SearchOptions options{.repetition_penalty = 2};
  EXPECT_THAT(changed({2, -3, 4, 0.5f}, options, ids, 3), ElementsAre(1, -6, 4, 0.5f));
  EXPECT_THAT(changed({1, -6, 4, 0.5f}, options, ids, 3), ElementsAre(0.5f, -12, 4, 0.5f));
}

TEST(TokenRules, PresenceAndFrequencyPenaltiesCountGeneratedTokensOnly) {
  const std::vector<int32_t> ids{0, 3, 1, 2, 1, 77};  // the first two are the prompt
  const std::vector<float> scores{5, 5, -5, 5};
  EXPECT_THAT(changed(scores, {.presence_penalty = 0.5}, ids, 2), ElementsAre(5, 4.5f, -5.5f, 5));
  EXPECT_THAT(changed(scores, {.frequency_penalty = 0.5}, ids, 2), ElementsAre(5, 4, -5.5f, 5));
  EXPECT_THAT(changed(scores, {.presence_penalty = -1, .frequency_penalty = 0.25}, ids, 2),
              ElementsAre(5, 5.5f, -4.25f, 5));
  EXPECT_THAT(changed(scores, {.presence_penalty = 1}, ids, 6), testing::ElementsAreArray(scores));
}

TEST(TokenRules, LogitBiasIsAdded) {
  EXPECT_THAT(changed({1, 2, 3}, {.logit_bias = {{0, 2.5}, {2, -100}}}, {}),
              ElementsAre(3.5f, 2, -97));
  EXPECT_NO_THROW(check_token_ids({.logit_bias = {{49, 1.0}}}, 50));
  EXPECT_THROW(check_token_ids({.logit_bias = {{50, 1.0}}}, 50), Error);
  EXPECT_THROW(check(SearchOptions{.logit_bias = {{3, 101.0}}}), Error);
  EXPECT_THROW(check(SearchOptions{.presence_penalty = 2.5}), Error);
}

// Greedy, sampled and with a beam: the answers alone are those of one batch, and the options change
// them.
TEST(TokenRules, PenaltiesDoNotDependOnTheBatch) {
  const Model model = tiny_model(Family::decoder_only);
  const auto inputs = random_inputs(12, 5);
  for (SearchOptions search :
       {SearchOptions{}, SearchOptions{.sample = true}, SearchOptions{.beam = 3}}) {
    search.max_new_tokens = 16;
    const auto plain = Engine(model).run_ids(inputs, search);
    search.presence_penalty = 0.5, search.frequency_penalty = 1.5;
    search.logit_bias = {{7, 2.0}, {9, -100.0}};
    const auto together = Engine(model).run_ids(inputs, search);
    EXPECT_NE(together, plain);
    Engine alone(model, {.threads = 1});
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Result result = alone.submit({.ids = inputs[i], .search = search, .stream = i}).get();
      EXPECT_EQ(result.best().ids, together[i]) << "beam " << search.beam << ", input " << i;
    }
  }
}

TEST(TokenRules, NoNgramOccursTwice) {
  const std::vector<int32_t> ids{1, 2, 3, 1, 2, 0, 1, 2};
  const auto scores = [&](int n, std::ptrdiff_t length) {
    return changed(std::vector<float>(5, 1.0f), {.no_repeat_ngram = n},
                   {ids.begin(), ids.begin() + length});
  };
  EXPECT_THAT(scores(3, 8), ElementsAre(kBanned, 1, 1, kBanned, 1));  // 1 2 → 3 and 0
  EXPECT_THAT(scores(2, 8), ElementsAre(kBanned, 1, 1, kBanned, 1));
  EXPECT_THAT(scores(4, 8), ElementsAre(1, 1, 1, 1, 1));  // 0 1 2 is new
  EXPECT_THAT(scores(1, 3), ElementsAre(1, kBanned, kBanned, kBanned, 1));
  EXPECT_THAT(scores(3, 1), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(scores(2, 0), ElementsAre(1, 1, 1, 1, 1));
}

TEST(TokenRules, IdsOutsideOfTheVocabularyAreRefused) {
  EXPECT_NO_THROW(check_token_ids({.forced_first_id = 49}, 50));
  EXPECT_THROW(check_token_ids({.forced_first_id = 50}, 50), Error);
  EXPECT_THROW(check_token_ids({.forced_last_id = 50}, 50), Error);
}

}  // namespace
}  // namespace heed
