// Chooses the next token from the logits of one row: greedy, or sampling with temperature, top-k,
// top-p (nucleus) and min-p.
//
//   Sampler sampler;                      // keeps its working memory; one for each thread
//   const auto next = sampler.choose(logits, {.temperature = 0.8f, .top_p = 0.95f, .seed = 1},
//                                    {.rules = {.ids = sequence}, .request = 17, .position = 42});
//   if (!next) …                          // the rules have banned every token
//
// The choice is a function of the logits, the options and (seed, request, position): not of the
// batch, of threads, or of earlier draws.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "infer/search/token_rules.h"

namespace heed {

struct SamplingOptions {
  float temperature = 1;  // 0: argmax (greedy)
  int top_k = 0;          // > 0: from the k most probable tokens
  // < 1: from the most probable tokens with at least this total probability (of what top_k left).
  float top_p = 1;
  float min_p = 0;  // > 0: minimum probability, relative to the most probable token
  uint64_t seed = 0;
  // Compute the log-probability, which costs a log-sum-exp over the vocabulary.
  bool scored = true;
};

struct SamplingContext {
  TokenRules rules{};
  uint64_t request = 0;   // random stream: draws of different requests are independent …
  uint32_t position = 0;  // … and so are those of a request's positions
};

struct ScoredToken {
  int32_t token = 0;
  // From the model's logits: before rules, temperature and cuts. 0 if not scored.
  float log_probability = 0;
};

class Sampler {
 public:
  // logits [vocabulary] of the model. Of equal scores the lower id wins. Returns nothing if no token
  // has a score above -infinity.
  std::optional<ScoredToken> choose(std::span<const float> logits, const SamplingOptions& options,
                                    const SamplingContext& context);

  // Changes scores (logits or log-probabilities) by the rules.
  void apply(const TokenRules& rules, std::span<float> scores) {
    heed::apply(rules, scores, rules_scratch_);
  }

  // The `count` tokens of the highest scores above -infinity, best first; of equal scores the lower
  // id is first. Valid until the next call.
  std::span<const int32_t> best(std::span<const float> scores, int64_t count);

 private:
  void find_maxima(std::span<const float> scores);
  std::optional<int32_t> argmax(std::span<const float> scores);
  std::optional<int32_t> draw(std::span<const float> scores, const SamplingOptions& options,
                              const SamplingContext& context);
  std::span<const int32_t> candidates(std::span<const float> scores,
                                      const SamplingOptions& options);
  std::span<const int32_t> nucleus(std::span<const float> scores, const SamplingOptions& options);
  float weight(int32_t token) const { return weights_[static_cast<size_t>(token)]; }

  std::vector<float> scores_;    // [vocabulary]: logits after the rules
  std::vector<float> weights_;   // [vocabulary]: probabilities after temperature
  std::vector<int32_t> ranked_;  // ids
  std::vector<float> maxima_;    // of each run of scores (kernels/rows/maxima.h)
  std::vector<float> greatest_;  // maxima_, partially sorted
  TokenScratch rules_scratch_;
};

}  // namespace heed
