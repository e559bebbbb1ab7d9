#include "infer/search/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "kernels/rows/maxima.h"
#include "kernels/rows/softmax.h"

namespace heed {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The random streams of sampling.
constexpr uint32_t kSamplingSite = 0x5A;

// Tokens that top-p ranks at first: nearly always enough, and cheap.
constexpr int64_t kFirstNucleus = 64;

// Uniform in [0, 1), 53 bits.
double uniform(uint64_t seed, uint64_t request, uint32_t position) {
  const auto bits =
      random_block({.seed = seed, .step = position, .site = kSamplingSite}, /*block=*/request);
  return static_cast<double>((uint64_t{bits[0]} << 21) ^ (bits[1] >> 11)) * 0x1p-53;
}

// Calls look(token), in order, for every score above bound() at that time, except in runs whose
// maximum is below `least`. Nearly all runs of a vocabulary are skipped by their maximum.
template <class Bound, class Look>
void for_each_above(std::span<const float> scores, std::span<const float> maxima, float least,
                    const Bound& bound, const Look& look) {
  const auto look_at = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (scores[i] > bound()) look(static_cast<int32_t>(i));
    }
  };
  constexpr size_t kRun = kernels::kMaximaRun;
  for (size_t run = 0; run < maxima.size(); ++run) {
    if (maxima[run] >= least && maxima[run] > bound()) look_at(run * kRun, (run + 1) * kRun);
  }
  look_at(maxima.size() * kRun, scores.size());
}

}  // namespace

void Sampler::find_maxima(std::span<const float> scores) {
  maxima_.resize(scores.size() / kernels::kMaximaRun);
  kernels::run_maxima(scores.data(), std::ssize(maxima_), maxima_.data());
}

// The most probable token; none if no score is above -infinity. NaN is never chosen.
std::optional<int32_t> Sampler::argmax(std::span<const float> scores) {
  find_maxima(scores);
  float best = kNever;
  std::optional<int32_t> token;
  for_each_above(
      scores, maxima_, kNever, [&] { return best; },
      [&](int32_t id) { best = scores[static_cast<size_t>(id)], token = id; });
  return token;
}

std::span<const int32_t> Sampler::best(std::span<const float> scores, int64_t count) {
  const auto better = [&](int32_t a, int32_t b) {
    const float score_a = scores[static_cast<size_t>(a)], score_b = scores[static_cast<size_t>(b)];
    return score_a != score_b ? score_a > score_b : a < b;
  };
  // A heap of the best so far, the worst of them in front. Only a higher score than that enters it:
  // an equal one has a higher id, because tokens are visited in order.
  ranked_.clear();
  if (count <= 0) return ranked_;
  const auto is_full = [&] { return static_cast<int64_t>(ranked_.size()) == count; };
  const auto worst = [&] {
    if (!is_full()) return kNever;
    return scores[static_cast<size_t>(ranked_.front())];
  };
  // The maxima of `count` runs are as many tokens, so that none below them can be among the best.
  find_maxima(scores);
  float least = kNever;
  if (count < std::ssize(maxima_)) {
    greatest_ = maxima_;
    const auto last = greatest_.begin() + (count - 1);
    std::ranges::nth_element(greatest_, last, std::greater());
    least = *last;
  }
  for_each_above(scores, maxima_, least, worst, [&](int32_t token) {
    if (is_full()) {
      std::ranges::pop_heap(ranked_, better);
      ranked_.pop_back();
    }
    ranked_.push_back(token);
    std::ranges::push_heap(ranked_, better);
  });
  std::ranges::sort_heap(ranked_, better);
  return ranked_;
}

// The smallest set of most probable tokens with total probability top_p, ranked no further than
// needed.
std::span<const int32_t> Sampler::nucleus(std::span<const float> scores, const SamplingOptions& o) {
  const auto all = static_cast<int64_t>(scores.size());
  const int64_t most = o.top_k > 0 ? std::min<int64_t>(o.top_k, all) : all;
  for (int64_t count = o.top_k > 0 ? most : std::min(kFirstNucleus, most);;
       count = std::min(4 * count, most)) {
    const std::span<const int32_t> ranked = best(scores, count);
    double total = o.top_k > 0 ? 0 : 1;
    for (size_t i = 0; o.top_k > 0 && i < ranked.size(); ++i) total += weight(ranked[i]);
    double sum = 0;
    for (size_t i = 0; i < ranked.size(); ++i) {
      sum += weight(ranked[i]);
      if (o.top_p < 1 && sum >= o.top_p * total) return ranked.first(i + 1);
    }
    if (count == most) return ranked;
  }
}

// The tokens that top-k, top-p and min-p leave, given their weights; empty: all of them.
std::span<const int32_t> Sampler::candidates(std::span<const float> scores,
                                             const SamplingOptions& o) {
  if (o.top_k == 0 && o.top_p == 1 && o.min_p == 0) return {};
  std::span<const int32_t> left;
  if (o.top_k > 0 || o.top_p < 1) {
    left = nucleus(scores, o);
    const auto unlikely = std::ranges::find_if(
        left, [&](int32_t token) { return weight(token) < o.min_p * weight(left[0]); });
    return left.first(static_cast<size_t>(unlikely - left.begin()));
  }
  const float least = o.min_p * *std::ranges::max_element(weights_);
  ranked_.clear();
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] >= least && weights_[i] > 0) ranked_.push_back(static_cast<int32_t>(i));
  }
  return ranked_;
}

std::optional<int32_t> Sampler::draw(std::span<const float> scores, const SamplingOptions& o,
                                     const SamplingContext& context) {
  const std::optional<int32_t> top = argmax(scores);
  if (!top || o.temperature == 0) return top;
  // Relative to the largest before the division: a small temperature must not overflow.
  const float largest = scores[static_cast<size_t>(*top)];
  weights_.resize(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    const float scaled = (scores[i] - largest) / o.temperature;
    weights_[i] = scaled;
    if (std::isnan(scaled)) weights_[i] = kNever;
  }
  weights_[static_cast<size_t>(*top)] = 0;
  kernels::softmax(weights_.data(), weights_.data(), static_cast<int64_t>(weights_.size()));

  const std::span<const int32_t> some = candidates(scores, o);
  const size_t count = some.empty() ? weights_.size() : some.size();
  const auto token = [&](size_t i) { return some.empty() ? static_cast<int32_t>(i) : some[i]; };
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += weight(token(i));
  const double target = uniform(o.seed, context.request, context.position) * total;
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += weight(token(i));
    if (sum > target) return token(i);
  }
  return top;  // not reached: target is below the total, which is the same sum
}

std::optional<ScoredToken> Sampler::choose(std::span<const float> logits,
                                           const SamplingOptions& options,
                                           const SamplingContext& context) {
  HEED_CHECK(!logits.empty(), "sampler: logits must not be empty");
  const TokenRules& rules = context.rules;
  std::span<const float> scores = logits;
  if (rules.are_set()) {
    scores_.assign(logits.begin(), logits.end());
    apply(rules, scores_);
    scores = scores_;
  }
  const std::optional<int32_t> token = draw(scores, options, context);
  if (!token) return std::nullopt;
  if (!options.scored) return ScoredToken{.token = *token};
  const float sum = kernels::log_sum_exp(logits.data(), static_cast<int64_t>(logits.size()));
  return ScoredToken{*token, logits[static_cast<size_t>(*token)] - sum};
}

}  // namespace heed
