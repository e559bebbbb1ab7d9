#include <string_view>

#include "base/text/number_text.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "text/metrics/metric_signature.h"
#include "text/metrics/metric_text.h"
#include "text/metrics/ngrams.h"

namespace heed {
namespace {

constexpr double kEps = 1e-16;  // precision or recall without n-grams, in eps_smoothing

void check_options(const ChrfOptions& options) {
  const bool fine = options.char_order >= 0 && options.word_order >= 0 && options.beta >= 0 &&
                    options.char_order + options.word_order > 0;
  if (fine) return;
  throw Error(ErrorCode::invalid_argument,
              "chrF: char_order, word_order and beta must be 0 or more, and one order above 0, "
              "got " +
                  std::to_string(options.char_order) + ", " + std::to_string(options.word_order) +
                  " and " + std::to_string(options.beta));
}

// Python's string.punctuation
bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Words with one punctuation mark split off: the last, or else the first. "(hi)" gives "(hi" and
// ")", as chrF++ is defined.
std::vector<std::string_view> words_and_punctuation(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split_words(text)) {
    const bool single = word.size() == 1;  // a multi-byte character is not a mark
    if (!single && is_ascii_punctuation(word.back())) {
      words.push_back(word.substr(0, word.size() - 1));
      words.push_back(word.substr(word.size() - 1));
    } else if (!single && is_ascii_punctuation(word.front())) {
      words.push_back(word.substr(0, 1));
      words.push_back(word.substr(1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

struct OrderCounts {
  int64_t hypothesis = 0, reference = 0, matches = 0;
};
using ChrfCounts = std::vector<OrderCounts>;  // character orders, then word orders

// Popović (2015) and (2017): F-beta of the n-grams. sacreBLEU averages precision and recall over the
// orders that both sides have; eps_smoothing averages F over all orders.
double f_score(const ChrfCounts& counts, const ChrfOptions& options) {
  const double factor = static_cast<double>(options.beta) * options.beta;
  double sum_of_scores = 0, precisions = 0, recalls = 0;
  int effective_orders = 0;
  for (const OrderCounts& order : counts) {
    const auto matches = static_cast<double>(order.matches);
    const double precision =
        order.hypothesis > 0 ? matches / static_cast<double>(order.hypothesis) : kEps;
    const double recall =
        order.reference > 0 ? matches / static_cast<double>(order.reference) : kEps;
    const double denominator = factor * precision + recall;
    sum_of_scores += denominator > 0 ? (1 + factor) * precision * recall / denominator : kEps;
    if (order.hypothesis > 0 && order.reference > 0) {
      precisions += precision;
      recalls += recall;
      ++effective_orders;
    }
  }
  if (options.eps_smoothing) return 100 * sum_of_scores / static_cast<double>(counts.size());
  if (precisions + recalls == 0) return 0;
  const double precision = precisions / effective_orders, recall = recalls / effective_orders;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

class ChrfCounter {
 public:
  explicit ChrfCounter(const ChrfOptions& options)
      : options_(options), sums_(static_cast<size_t>(options.char_order + options.word_order)) {}

  // Uses the best-scoring reference.
  void add(const std::string& hypothesis, const std::vector<std::string>& references);
  const ChrfCounts& sums() const { return sums_; }

 private:
  struct Side {
    NgramCounts characters, words;
  };

  void count(const std::string& text, Side& side);
  ChrfCounts compare(const Side& hypothesis, const Side& reference) const;

  const ChrfOptions& options_;
  ChrfCounts sums_;
  WordNumbers word_numbers_;
  NgramTable characters_, words_;
  Side hypothesis_, reference_;
};

void ChrfCounter::count(const std::string& text, Side& side) {
  const std::string line = options_.lowercase ? lower(text) : text;
  std::vector<uint32_t> characters;
  characters.reserve(line.size());
  for (const char32_t c : code_points(line)) {
    if (options_.whitespace || !is_python_space(c)) characters.push_back(c);
  }
  count_ngrams(characters_, characters, options_.char_order, side.characters);
  if (options_.word_order > 0) {
    count_ngrams(words_, word_numbers_(words_and_punctuation(line)), options_.word_order,
                 side.words);
  }
}

ChrfCounts ChrfCounter::compare(const Side& hypothesis, const Side& reference) const {
  ChrfCounts result;
  const auto append = [&result](const NgramTable& table, const NgramCounts& h,
                                const NgramCounts& r) {
    const std::vector<int64_t> matches = count_matches(table, h, r);
    for (size_t n = 0; n < matches.size(); ++n) {
      // Orders that the reference lacks are not counted for the hypothesis.
      const int64_t of_hypothesis = r.totals[n] > 0 ? h.totals[n] : 0;
      result.push_back({of_hypothesis, r.totals[n], matches[n]});
    }
  };
  append(characters_, hypothesis.characters, reference.characters);
  if (options_.word_order > 0) append(words_, hypothesis.words, reference.words);
  return result;
}

void ChrfCounter::add(const std::string& hypothesis, const std::vector<std::string>& references) {
  characters_.clear();
  words_.clear();
  count(hypothesis, hypothesis_);
  ChrfCounts best;
  double best_score = -1;
  for (const std::string& text : references) {
    count(text, reference_);
    ChrfCounts counts = compare(hypothesis_, reference_);
    const double score = f_score(counts, options_);
    if (score > best_score) {
      best_score = score;
      best = std::move(counts);
    }
  }
  for (size_t n = 0; n < best.size(); ++n) {
    sums_[n].hypothesis += best[n].hypothesis;
    sums_[n].reference += best[n].reference;
    sums_[n].matches += best[n].matches;
  }
}

std::string yes_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

ChrfScore chrf(const std::vector<std::string>& hypotheses, const References& references,
               const ChrfOptions& options) {
  check_options(options);
  check_segments("chrf", hypotheses, references);
  ChrfCounter counter(options);
  for (size_t i = 0; i < hypotheses.size(); ++i) counter.add(hypotheses[i], references[i]);
  return {.score = f_score(counter.sums(), options),
          .name = "chrF" + std::to_string(options.beta) +
                  std::string(static_cast<size_t>(options.word_order), '+'),
          .signature = metric_signature(references, {{"case", options.lowercase ? "lc" : "mixed"},
                                                     {"eff", yes_no(!options.eps_smoothing)},
                                                     {"nc", std::to_string(options.char_order)},
                                                     {"nw", std::to_string(options.word_order)},
                                                     {"space", yes_no(options.whitespace)}})};
}

std::string ChrfScore::text(int decimals) const {
  return name + "|" + signature + " = " + fixed(score, decimals);
}

}  // namespace heed
