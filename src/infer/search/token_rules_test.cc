#include "infer/search/token_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "heed/error.h"

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
