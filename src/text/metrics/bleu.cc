#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/text/number_text.h"
#include "base/text/suggest.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "text/metrics/bleu_tokenizers.h"
#include "text/metrics/metric_signature.h"
#include "text/metrics/metric_text.h"
#include "text/metrics/ngrams.h"

namespace heed {
namespace {

struct Smoothing {
  const char* name;
  std::optional<double> value;  // the default, if the method has a parameter
};
// Chen and Cherry (2014), "A Systematic Comparison of Smoothing Techniques for Sentence-Level
// BLEU": methods 3, 1 and 2, with that paper's values.
constexpr std::array<Smoothing, 4> kSmoothings = {
    {{"exp", std::nullopt}, {"floor", 0.1}, {"add-k", 1.0}, {"none", std::nullopt}}};

// log 0: sacreBLEU's value, which makes the score 0 instead of NaN.
constexpr double kLogOfZero = -9999999999.0;

const Smoothing& find_smoothing(const std::string& name) {
  std::vector<std::string> names;
  for (const Smoothing& known : kSmoothings) {
    if (name == known.name) return known;
    names.emplace_back(known.name);
  }
  const auto meant = nearest(name, names);
  throw Error(ErrorCode::invalid_argument,
              "BLEU: smooth must be exp, floor, add-k or none, got '" + name + "'",
              meant ? "did you mean '" + *meant + "'?" : "published scores use exp");
}

void check_options(const BleuOptions& options) {
  const Smoothing& smoothing = find_smoothing(options.smooth);
  if (options.smooth_value && !smoothing.value) {
    throw Error(ErrorCode::invalid_argument,
                "BLEU: smooth_value must not be set for smooth = " + options.smooth,
                "smooth_value applies to floor and add-k");
  }
  const bool bad_value =
      options.smooth_value && !(*options.smooth_value >= 0 && std::isfinite(*options.smooth_value));
  if (bad_value) {
    throw Error(ErrorCode::invalid_argument, "BLEU: smooth_value must be 0 or more, got " +
                                                 std::to_string(*options.smooth_value));
  }
  if (options.max_order < 1) {
    throw Error(ErrorCode::invalid_argument,
                "BLEU: max_order must be 1 or more, got " + std::to_string(options.max_order));
  }
}

double smooth_value(const BleuOptions& options) {
  return options.smooth_value.value_or(find_smoothing(options.smooth).value.value_or(0));
}

std::string signature(const BleuOptions& options, const References& references) {
  std::string smooth = options.smooth;
  if (find_smoothing(options.smooth).value) {
    smooth.append("[").append(fixed(smooth_value(options), 2)).append("]");
  }
  return metric_signature(references, {{"case", options.lowercase ? "lc" : "mixed"},
                                       {"eff", options.effective_order ? "yes" : "no"},
                                       {"tok", options.tokenize},
                                       {"smooth", smooth}});
}

// Sufficient statistics of BLEU, summed over segments.
struct BleuCounts {
  std::vector<int64_t> correct, total;  // [order - 1]
  int64_t sys_len = 0, ref_len = 0;
};

class BleuCounter {
 public:
  explicit BleuCounter(const BleuOptions& options)
      : options_(options), tokenizer_(find_bleu_tokenizer(options.tokenize)) {
    sums_.correct.assign(static_cast<size_t>(options.max_order), 0);
    sums_.total = sums_.correct;
  }

  void add(const std::string& hypothesis, const std::vector<std::string>& references);
  const BleuCounts& sums() const { return sums_; }

 private:
  std::vector<uint32_t> tokens(const std::string& text);

  const BleuOptions& options_;
  BleuTokenizer tokenizer_;
  BleuCounts sums_;
  WordNumbers words_;
  NgramTable table_;
  NgramCounts hypothesis_, reference_, best_;  // best_: each n-gram's maximum over references
};

std::vector<uint32_t> BleuCounter::tokens(const std::string& text) {
  const std::string tokenized =
      options_.lowercase ? tokenizer_(strip_end(lower(text))) : tokenizer_(strip_end(text));
  return words_(split_words(tokenized));
}

void BleuCounter::add(const std::string& hypothesis, const std::vector<std::string>& references) {
  table_.clear();
  const std::vector<uint32_t> sys = tokens(hypothesis);
  count_ngrams(table_, sys, options_.max_order, hypothesis_);
  const auto sys_len = static_cast<int64_t>(sys.size());

  best_.count.clear();
  std::optional<int64_t> closest;  // the closest reference length; the shorter of two
  for (const std::string& text : references) {
    const std::vector<uint32_t> ref = tokens(text);
    count_ngrams(table_, ref, options_.max_order, reference_);
    best_.count.resize(std::max(best_.count.size(), reference_.count.size()), 0);
    for (size_t i = 0; i < reference_.count.size(); ++i) {
      best_.count[i] = std::max(best_.count[i], reference_.count[i]);
    }
    const auto length = static_cast<int64_t>(ref.size());
    const auto key = [sys_len](int64_t n) { return std::pair(std::abs(n - sys_len), n); };
    if (!closest || key(length) < key(*closest)) closest = length;
  }

  const std::vector<int64_t> matches = count_matches(table_, hypothesis_, best_);
  for (size_t n = 0; n < matches.size(); ++n) {
    sums_.correct[n] += matches[n];
    sums_.total[n] += hypothesis_.totals[n];
  }
  sums_.sys_len += sys_len;
  sums_.ref_len += closest.value_or(0);
}

double brevity_penalty(int64_t sys_len, int64_t ref_len) {
  if (sys_len >= ref_len) return 1;
  if (sys_len == 0) return 0;
  return std::exp(1 - static_cast<double>(ref_len) / static_cast<double>(sys_len));
}

// Papineni et al. (2002): the geometric mean of the precisions, times the brevity penalty.
BleuScore score_of(const BleuCounts& counts, const BleuOptions& options) {
  const auto orders = static_cast<size_t>(options.max_order);
  BleuScore result{.precisions = std::vector<double>(orders, 0.0),
                   .bp = brevity_penalty(counts.sys_len, counts.ref_len),
                   .sys_len = counts.sys_len,
                   .ref_len = counts.ref_len};
  const bool any = std::any_of(counts.correct.begin(), counts.correct.end(),
                               [](int64_t correct) { return correct > 0; });
  if (!any) return result;

  const double value = smooth_value(options);
  double exp_divisor = 1;
  size_t effective = orders;
  for (size_t n = 0; n < orders; ++n) {
    auto correct = static_cast<double>(counts.correct[n]);
    auto total = static_cast<double>(counts.total[n]);
    if (options.smooth == "add-k" && n > 0) {
      correct += value;
      total += value;
    }
    if (total == 0) break;
    if (options.effective_order) effective = n + 1;
    if (correct > 0) {
      result.precisions[n] = 100 * correct / total;
    } else if (options.smooth == "exp") {
      exp_divisor *= 2;
      result.precisions[n] = 100 / (exp_divisor * total);
    } else if (options.smooth == "floor") {
      result.precisions[n] = 100 * value / total;
    }
  }
  double sum_of_logs = 0;
  for (size_t n = 0; n < effective; ++n) {
    const double precision = result.precisions[n];
    sum_of_logs += precision == 0 ? kLogOfZero : std::log(precision);
  }
  result.score = result.bp * std::exp(sum_of_logs / static_cast<double>(effective));
  return result;
}

}  // namespace

BleuScore bleu(const std::vector<std::string>& hypotheses, const References& references,
               const BleuOptions& options) {
  check_options(options);
  check_segments("bleu", hypotheses, references);
  BleuCounter counter(options);
  int64_t tokenized_lines = 0;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    if (hypotheses[i].ends_with(" .")) ++tokenized_lines;
    counter.add(hypotheses[i], references[i]);
  }
  BleuScore result = score_of(counter.sums(), options);
  result.tokenized_lines = tokenized_lines;
  result.signature = signature(options, references);
  return result;
}

BleuScore sentence_bleu(const std::string& hypothesis, const std::vector<std::string>& references,
                        BleuOptions options) {
  options.effective_order = true;
  return bleu({hypothesis}, {references}, options);
}

std::string BleuScore::text(int decimals) const {
  std::string line = "BLEU|" + signature + " = " + fixed(score, decimals) + " ";
  for (size_t n = 0; n < precisions.size(); ++n) {
    line.append(n == 0 ? "" : "/").append(fixed(precisions[n], 1));
  }
  const double ratio =
      ref_len == 0 ? 0 : static_cast<double>(sys_len) / static_cast<double>(ref_len);
  return line + " (BP = " + fixed(bp, 3) + " ratio = " + fixed(ratio, 3) +
         " hyp_len = " + std::to_string(sys_len) + " ref_len = " + std::to_string(ref_len) + ")";
}

}  // namespace heed
