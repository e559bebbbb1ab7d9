#include "infer/search/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/philox.h"

namespace heed {
namespace {

using testing::ElementsAre;

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  // Shifted: logits are only known up to a constant.
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + 3));
  return logits;
}

// How often each token comes, of many draws.
std::map<int32_t, double> frequencies(const std::vector<float>& logits,
                                      const SamplingOptions& options) {
  constexpr uint32_t kDraws = 20000;
  Sampler sampler;
  std::map<int32_t, double> counts;
  for (uint32_t i = 0; i < kDraws; ++i) {
    counts[sampler.choose(logits, options, {.position = i})->token] += 1.0 / kDraws;
  }
  return counts;
}

// Four standard deviations of 20000 draws.
constexpr double kSlack = 0.015;

TEST(Sampler, GreedyTakesTheLikeliestAndOfEqualsTheFirst) {
  Sampler sampler;
  const std::vector<float> logits{1, 4, -2, 4, 0};
  const auto choice = sampler.choose(logits, {.temperature = 0}, {});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->token, 1);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  EXPECT_NEAR(choice->log_probability, 4 - std::log(sum), 1e-6);
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  const auto counts = frequencies(logs({0.5, 0.2, 0.05, 0.25}), {});
  EXPECT_NEAR(counts.at(0), 0.5, kSlack);
  EXPECT_NEAR(counts.at(1), 0.2, kSlack);
  EXPECT_NEAR(counts.at(2), 0.05, kSlack);
  EXPECT_NEAR(counts.at(3), 0.25, kSlack);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const auto logits = logs({0.8, 0.2});
  const auto sharp = frequencies(logits, {.temperature = 0.5f});
  EXPECT_NEAR(sharp.at(1), 0.04 / (0.64 + 0.04), kSlack);
  const auto flat = frequencies(logits, {.temperature = 2});
  EXPECT_NEAR(flat.at(1), std::sqrt(0.2) / (std::sqrt(0.8) + std::sqrt(0.2)), kSlack);
  // As good as greedy, and no overflow on the way.
  EXPECT_EQ(frequencies({3e38f, -3e38f, 1}, {.temperature = 1e-30f}).size(), 1u);
}

TEST(Sampler, TopKDrawsAmongTheKLikeliest) {
  const auto counts = frequencies(logs({0.1, 0.4, 0.2, 0.3}), {.top_k = 2});
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 4.0 / 7, kSlack);
  EXPECT_NEAR(counts.at(3), 3.0 / 7, kSlack);
  EXPECT_EQ(frequencies(logs({0.4, 0.6}), {.top_k = 10}).size(), 2u);
}

TEST(Sampler, TopPDrawsAmongTheFewestThatReachIt) {
  const auto logits = logs({0.1, 0.4, 0.2, 0.3});
  EXPECT_EQ(frequencies(logits, {.top_p = 0.35f}).size(), 1u);
  const auto two = frequencies(logits, {.top_p = 0.65f});
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(1), 4.0 / 7, kSlack);
  EXPECT_EQ(frequencies(logits, {.top_p = 0.75f}).size(), 3u);
  // After top_k, of what that left: 0.4 of 0.7 is 0.57.
  EXPECT_EQ(frequencies(logits, {.top_k = 2, .top_p = 0.55f}).size(), 1u);
  EXPECT_EQ(frequencies(logits, {.top_k = 2, .top_p = 0.6f}).size(), 2u);
}

// More tokens than are ranked at first.
TEST(Sampler, TopPOfAFlatDistribution) {
  const std::vector<float> flat(1000, 0.5f);
  Sampler sampler;
  int32_t most = 0;
  for (uint32_t i = 0; i < 1500; ++i) {
    most = std::max(most, sampler.choose(flat, {.top_p = 0.5f}, {.position = i})->token);
  }
  EXPECT_LT(most, 502);  // the first 500 of equals; rounding may let one more in
  EXPECT_GT(most, 480);
}

TEST(Sampler, MinPIsRelativeToTheLikeliest) {
  const auto logits = logs({0.1, 0.5, 0.15, 0.25});
  EXPECT_EQ(frequencies(logits, {.min_p = 0.25f}).size(), 3u);
  EXPECT_EQ(frequencies(logits, {.min_p = 0.4f}).size(), 2u);
  EXPECT_EQ(frequencies(logits, {.top_k = 3, .min_p = 0.4f}).size(), 2u);
  EXPECT_EQ(frequencies(logits, {.min_p = 1}).size(), 1u);
}

TEST(Sampler, AChoiceDependsOnSeedRequestAndPositionAlone) {
  Random random({.seed = 1});
  std::vector<float> logits(300);
  for (float& x : logits) x = random.normal();
  const auto tokens = [&](uint64_t seed, uint64_t request, uint32_t first) {
    std::vector<int32_t> all;
    Sampler fresh;
    for (uint32_t i = 0; i < 20; ++i) {
      all.push_back(
          fresh.choose(logits, {.seed = seed}, {.request = request, .position = first + i})->token);
    }
    return all;
  };
  const auto expected = tokens(1, 1, 0);
  EXPECT_EQ(tokens(1, 1, 0), expected);
  EXPECT_NE(tokens(2, 1, 0), expected);
  EXPECT_NE(tokens(1, 2, 0), expected);
  EXPECT_NE(tokens(1, 1, 20), expected);
  // In any order, and with other draws between.
  Sampler used;
  for (uint32_t i = 20; i-- > 0;) {
    used.choose(logits, {.top_k = 5, .seed = 9}, {.request = 3, .position = i});
    EXPECT_EQ(used.choose(logits, {.seed = 1}, {.request = 1, .position = i})->token, expected[i]);
  }
}

TEST(Sampler, BannedTokensNeverCome) {
  const std::vector<float> logits{5, 1, 4};
  const std::vector<int32_t> banned{0};
  Sampler sampler;
  const auto choice = sampler.choose(logits, {.temperature = 0}, {.rules = {.banned = banned}});
  EXPECT_EQ(choice->token, 2);
  // The log-probability is the model's own.
  EXPECT_NEAR(choice->log_probability, 4 - std::log(std::exp(5.0) + std::exp(1.0) + std::exp(4.0)),
              1e-6);
  const std::vector<int32_t> all{0, 1, 2};
  EXPECT_FALSE(sampler.choose(logits, {}, {.rules = {.banned = all}}));
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_NE(sampler
                  .choose(logits, {.temperature = 3, .top_k = 3},
                          {.rules = {.banned = banned}, .position = i})
                  ->token,
              0);
  }
}

TEST(Sampler, AForcedTokenComesWhateverTheLogits) {
  Sampler sampler;
  const std::vector<float> logits{9, kNever, 1};
  for (const int32_t forced : {0, 2}) {
    EXPECT_EQ(sampler.choose(logits, {}, {.rules = {.forced = forced}})->token, forced);
  }
}

TEST(Sampler, WhatIsNotANumberIsNotChosen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Sampler sampler;
  const std::vector<float> logits{nan, 1, nan, 2};
  EXPECT_EQ(sampler.choose(logits, {.temperature = 0}, {})->token, 3);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(sampler.choose(logits, {.top_k = 2}, {.position = i})->token % 2, 1);
  }
  EXPECT_FALSE(sampler.choose(std::vector<float>{nan, kNever}, {}, {}));
}

TEST(Sampler, BestRanksScores) {
  Sampler sampler;
  const std::vector<float> scores{1, 7, kNever, 7, 3};
  EXPECT_THAT(sampler.best(scores, 3), ElementsAre(1, 3, 4));
  EXPECT_THAT(sampler.best(scores, 9), ElementsAre(1, 3, 4, 0));
  EXPECT_THAT(sampler.best(scores, 0), ElementsAre());
}

// Vocabularies of all lengths around those of a run, with scores that are equal, not numbers and
// -infinity, against a full sort.
TEST(Sampler, BestAndLikeliestAreThoseOfASort) {
  Sampler sampler;
  for (size_t size : {1u, 63u, 64u, 65u, 200u, 1000u}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      Random random({.seed = seed, .step = static_cast<uint32_t>(size)});
      std::vector<float> scores(size);
      for (float& score : scores) {
        const uint64_t kind = random.below(10);
        score = kind == 0 ? kNever : kind == 1 ? NAN : static_cast<float>(random.below(50)) - 25;
      }
      std::vector<int32_t> expected;
      for (size_t i = 0; i < size; ++i) {
        if (scores[i] > kNever) expected.push_back(static_cast<int32_t>(i));
      }
      std::ranges::stable_sort(expected, std::greater<>(),
                               [&](int32_t id) { return scores[static_cast<size_t>(id)]; });
      for (const size_t count : {1u, 8u, 100u}) {
        const auto best = sampler.best(scores, static_cast<int64_t>(count));
        EXPECT_EQ(std::vector<int32_t>(best.begin(), best.end()),
                  std::vector<int32_t>(expected.begin(),
                                       expected.begin() + static_cast<std::ptrdiff_t>(
                                                              std::min(count, expected.size()))))
            << "size " << size << " seed " << seed;
      }
      const auto greedy = sampler.choose(scores, {.temperature = 0}, {});
      ASSERT_EQ(greedy.has_value(), !expected.empty());
      if (greedy) {
        EXPECT_EQ(greedy->token, expected.front());
      }
    }
  }
}

}  // namespace
}  // namespace heed
