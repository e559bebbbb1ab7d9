// The next token, from the logits of one row.
//
//   Sampler sampler;                      // keeps its working memory; one for each thread
//   const auto next = sampler.choose(logits, {.temperature = 0.8f, .top_p = 0.95f, .seed = 1},
//                                    {.text = tokens_so_far, .request = 17, .position = 42});
//   if (!next) …                          // the rules have left no token
//
// Rules say what may come next and are beam search's too; sampling options say how one of what is
// left is chosen. The choice is a function of the logits, the options and (seed, request,
// position): not of the batch, of threads, or of what was drawn before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace heed {

// Applied in this order.
struct TokenRules {
  // Of every token that is in the text, once: a positive score is divided by it and a negative one
  // multiplied (Keskar et al. 2019). 1: none.
  float repetition_penalty = 1;
  // > 0: no n tokens in a row that the text has already.
  int no_repeat_ngram = 0;
  std::span<const int32_t> banned{};  // ids
  int32_t forced = -1;                // ≥ 0: this one and no other, with score 0
};

struct SamplingOptions {
  float temperature = 1;  // 0: the likeliest token, always (greedy)
  int top_k = 0;          // > 0: one of the k likeliest
  // < 1: one of the likeliest that together have at least this probability (of what top_k left).
  float top_p = 1;
  float min_p = 0;  // > 0: none less likely than this times the likeliest
  uint64_t seed = 0;
  // Whether anybody reads the log-probability, which costs a sum over the vocabulary. The token is
  // the same.
  bool scored = true;
};
// Throws invalid_argument with everything that is wrong.
void check(const SamplingOptions& options);
void check(const TokenRules& rules, int64_t vocabulary);

struct SamplingContext {
  std::span<const int32_t> text{};  // what precedes, for the rules
  TokenRules rules{};
  uint64_t request = 0;   // draws of different requests are independent …
  uint32_t position = 0;  // … and so are those of a request's positions
};

struct ScoredToken {
  int32_t token = 0;
  // The model's own: before rules, temperature and cuts. 0 if it is not to be scored.
  float log_probability = 0;
};

class Sampler {
 public:
  // logits [vocabulary], as the model gave them. Between equal scores the lower id wins. Nothing:
  // no token has a score above -infinity.
  std::optional<ScoredToken> choose(std::span<const float> logits, const SamplingOptions& options,
                                    const SamplingContext& context);

  // Changes scores (logits or log-probabilities) by the rules; what must not come next becomes
  // -infinity. Ids of the text beyond the vocabulary are passed over.
  void apply(const TokenRules& rules, std::span<const int32_t> text, std::span<float> scores);

  // The `count` tokens of the highest scores, best first; as many as are above -infinity. Between
  // equal scores the lower id comes first. Valid until the next call.
  std::span<const int32_t> best(std::span<const float> scores, int64_t count);

 private:
  void find_maxima(std::span<const float> scores);
  std::optional<int32_t> likeliest(std::span<const float> scores);
  std::optional<int32_t> draw(std::span<const float> scores, const SamplingOptions& options,
                              const SamplingContext& context);
  std::span<const int32_t> candidates(std::span<const float> scores,
                                      const SamplingOptions& options);
  std::span<const int32_t> nucleus(std::span<const float> scores, const SamplingOptions& options);
  float weight(int32_t token) const { return weights_[static_cast<size_t>(token)]; }

  std::vector<float> scores_;     // [vocabulary]: logits after the rules
  std::vector<float> weights_;    // [vocabulary]: probabilities after temperature
  std::vector<int32_t> ranked_;   // ids
  std::vector<float> maxima_;     // of the scores, run after run (kernels/rows/maxima.h)
  std::vector<float> greatest_;   // some of them in front
  std::vector<uint8_t> is_seen_;  // [vocabulary]: 0 between calls
};

}  // namespace heed
