// Translation edit rate (Snover et al., 2006): the minimum number of edits from hypothesis to
// reference, where shifting a run of words is one edit. The optimal shifts are too costly to find, so
// scores are comparable only with the same greedy search: this one is sacreBLEU's version of Tercom,
// with its limits and its order of preference.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "base/text/number_text.h"
#include "heed/metrics.h"
#include "text/metrics/metric_signature.h"
#include "text/metrics/metric_text.h"
#include "text/metrics/ngrams.h"
#include "text/metrics/ter_tokenizer.h"

namespace heed {
namespace {

// Tercom's limits
constexpr int kMaxShiftWords = 10;
constexpr int kMaxShiftDistance = 50;
constexpr int kBeamWidth = 25;
// sacreBLEU's own
constexpr int kMaxShiftCandidates = 1000;

using Words = std::vector<uint32_t>;

// From hypothesis to reference: `remove` drops a word of the hypothesis, `insert` adds one.
enum class Edit : uint8_t { keep, substitute, insert, remove, undefined };

// The edit distance to one reference within a beam around the diagonal. Successive hypotheses are
// mostly shifted versions of the first, whose rows are cached: a row depends only on the words before
// it, so the rows of a common prefix are reused.
class BeamEditDistance {
 public:
  explicit BeamEditDistance(const Words& reference) : reference_(reference) {}

  // Computes all rows and keeps them.
  int distance(const Words& hypothesis) {
    base_ = hypothesis;
    rows_.resize((base_.size() + 1) * width());
    for (size_t j = 0; j < width(); ++j) rows_[j] = {static_cast<int>(j), Edit::insert};
    compute(base_, 0, rows_);
    return rows_.back().cost;
  }

  // The same for a shifted version of distance()'s last hypothesis, whose rows are kept.
  int distance_of_shifted(const Words& shifted) {
    const auto [a, b] = std::mismatch(base_.begin(), base_.end(), shifted.begin());
    const auto same = static_cast<size_t>(a - base_.begin());
    scratch_.resize(rows_.size());
    const auto kept = static_cast<std::ptrdiff_t>(same * width());
    std::copy(rows_.begin() + kept, rows_.begin() + kept + static_cast<std::ptrdiff_t>(width()),
              scratch_.begin() + kept);
    compute(shifted, same, scratch_);
    return scratch_.back().cost;
  }

  // The edits of distance(), first word first.
  std::vector<Edit> trace() const;

 private:
  struct Cell {
    int cost = 0;
    Edit edit = Edit::undefined;
  };
  static constexpr int kInfinity = std::numeric_limits<int>::max() / 2;

  size_t width() const { return reference_.size() + 1; }
  void compute(const Words& hypothesis, size_t done, std::vector<Cell>& rows) const;

  const Words& reference_;
  Words base_;
  std::vector<Cell> rows_, scratch_;  // [words of the hypothesis + 1, width()]
};

// Computes the rows after row `done`.
void BeamEditDistance::compute(const Words& hypothesis, size_t done,
                               std::vector<Cell>& rows) const {
  const auto columns = static_cast<int64_t>(width());
  const auto words = static_cast<int64_t>(hypothesis.size());
  const double ratio =
      words == 0 ? 1 : static_cast<double>(reference_.size()) / static_cast<double>(words);
  // With very different lengths, the beams of adjacent rows would not overlap.
  const int64_t beam =
      kBeamWidth < ratio / 2 ? static_cast<int64_t>(std::ceil(ratio / 2 + kBeamWidth)) : kBeamWidth;
  for (auto i = static_cast<int64_t>(done) + 1; i <= words; ++i) {
    Cell* row = rows.data() + i * columns;
    const Cell* above = row - columns;
    std::fill(row, row + columns, Cell{kInfinity, Edit::undefined});
    const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(i) * ratio));
    const int64_t begin = std::max<int64_t>(0, diagonal - beam);
    const int64_t end = i == words ? columns : std::min(columns, diagonal + beam);
    for (int64_t j = begin; j < end; ++j) {
      if (j == 0) {
        row[0] = {above[0].cost + 1, Edit::remove};
        continue;
      }
      const bool same =
          hypothesis[static_cast<size_t>(i) - 1] == reference_[static_cast<size_t>(j) - 1];
      // In the order of preference.
      const Cell options[] = {
          {above[j - 1].cost + (same ? 0 : 1), same ? Edit::keep : Edit::substitute},
          {above[j].cost + 1, Edit::remove},
          {row[j - 1].cost + 1, Edit::insert}};
      for (const Cell& option : options) {
        if (option.cost < row[j].cost) row[j] = option;
      }
    }
  }
}

std::vector<Edit> BeamEditDistance::trace() const {
  std::vector<Edit> edits;
  size_t i = base_.size(), j = reference_.size();
  while (i > 0 || j > 0) {
    const Edit edit = rows_[i * width() + j].edit;
    HEED_CHECK(edit != Edit::undefined, "every cell on the path must be inside the beam");
    edits.push_back(edit);
    if (edit != Edit::insert) --i;
    if (edit != Edit::remove) --j;
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

// The hypothesis word aligned to each reference word, and the errors on either side.
struct Alignment {
  std::vector<int> position;  // by reference word; -1: before the hypothesis begins
  std::vector<uint8_t> reference_wrong, hypothesis_wrong;
};

Alignment align(const std::vector<Edit>& trace) {
  Alignment result;
  int position = -1;
  for (const Edit edit : trace) {
    const bool wrong = edit != Edit::keep;
    if (edit != Edit::insert) {
      ++position;
      result.hypothesis_wrong.push_back(wrong);
    }
    if (edit != Edit::remove) {
      result.position.push_back(position);
      result.reference_wrong.push_back(wrong);
    }
  }
  return result;
}

struct Run {  // hypothesis[start … start + length) = reference[reference_start …)
  int start = 0, reference_start = 0, length = 0;
};

// The words with `length` of them from `start` moved to `target`.
Words shift(const Words& words, int start, int length, int target) {
  Words result;
  result.reserve(words.size());
  const auto append = [&](int begin, int end) {
    end = std::min(end, static_cast<int>(words.size()));
    for (int i = begin; i < end; ++i) result.push_back(words[static_cast<size_t>(i)]);
  };
  const int size = static_cast<int>(words.size());
  if (target < start) {
    append(0, target);
    append(start, start + length);
    append(target, start);
    append(start + length, size);
  } else if (target > start + length) {
    append(0, start);
    append(start + length, target);
    append(start, start + length);
    append(target, size);
  } else {  // within itself
    append(0, start);
    append(start + length, length + target);
    append(start, start + length);
    append(length + target, size);
  }
  return result;
}

class Ter {
 public:
  Ter(Words hypothesis, const Words& reference)
      : hypothesis_(std::move(hypothesis)), reference_(reference), distance_(reference) {}

  int edits() {
    if (reference_.empty()) return static_cast<int>(hypothesis_.size());
    int shifts = 0;
    while (shift_best()) ++shifts;
    return shifts + distance_.distance(hypothesis_);
  }

 private:
  // Applies the shift that reduces the edit distance most; false when there is none, or after too many
  // candidates.
  bool shift_best();
  void try_run(const Run& run, const Alignment& alignment, int distance);

  Words hypothesis_;
  const Words& reference_;
  BeamEditDistance distance_;
  int candidates_ = 0;
  // The best so far: edits saved, then the longest run, the earliest, and the earliest target.
  std::tuple<int, int, int, int> best_rank_;
  Words best_;
};

bool Ter::shift_best() {
  const int before = distance_.distance(hypothesis_);
  const Alignment alignment = align(distance_.trace());
  best_.clear();
  const int words = static_cast<int>(hypothesis_.size());
  const int reference_words = static_cast<int>(reference_.size());
  for (int h = 0; h < words && candidates_ < kMaxShiftCandidates; ++h) {
    const int from = std::max(0, h - kMaxShiftDistance);
    const int to = std::min(reference_words - 1, h + kMaxShiftDistance);
    for (int r = from; r <= to && candidates_ < kMaxShiftCandidates; ++r) {
      const int longest = std::min({kMaxShiftWords, words - h, reference_words - r});
      for (int length = 1; length <= longest && candidates_ < kMaxShiftCandidates; ++length) {
        const auto last = static_cast<size_t>(length) - 1;
        if (hypothesis_[static_cast<size_t>(h) + last] !=
            reference_[static_cast<size_t>(r) + last]) {
          break;
        }
        try_run({.start = h, .reference_start = r, .length = length}, alignment, before);
      }
    }
  }
  if (candidates_ >= kMaxShiftCandidates || best_.empty() || std::get<0>(best_rank_) <= 0) {
    return false;
  }
  hypothesis_ = best_;
  return true;
}

// Tries each target for a run with errors on both sides.
void Ter::try_run(const Run& run, const Alignment& alignment, int distance) {
  const auto any_wrong = [&run](const std::vector<uint8_t>& wrong, int start) {
    return std::any_of(wrong.begin() + start, wrong.begin() + start + run.length,
                       [](uint8_t w) { return w != 0; });
  };
  if (!any_wrong(alignment.hypothesis_wrong, run.start)) return;
  if (!any_wrong(alignment.reference_wrong, run.reference_start)) return;
  const int aligned = alignment.position[static_cast<size_t>(run.reference_start)];
  if (aligned >= run.start && aligned < run.start + run.length) return;

  int previous = -1;
  for (int offset = -1; offset < run.length; ++offset) {
    const int at = run.reference_start + offset;
    const int target = at == -1 ? 0 : alignment.position[static_cast<size_t>(at)] + 1;
    if (target == previous) continue;
    previous = target;
    Words shifted = shift(hypothesis_, run.start, run.length, target);
    HEED_CHECK(shifted.size() == hypothesis_.size(), "a shift must keep all words");
    const std::tuple rank(distance - distance_.distance_of_shifted(shifted), run.length, -run.start,
                          -target);
    ++candidates_;
    if (best_.empty() || rank > best_rank_) {
      best_rank_ = rank;
      best_ = std::move(shifted);
    }
  }
}

}  // namespace

TerScore ter(const std::vector<std::string>& hypotheses, const References& references,
             const TerOptions& options) {
  check_segments("ter", hypotheses, references);
  WordNumbers numbers;
  const auto words = [&](const std::string& text) {
    const std::string tokenized = tokenize_for_ter(text, options);
    return numbers(split_words(tokenized));
  };
  TerScore result;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const Words hypothesis = words(hypotheses[i]);
    int fewest = std::numeric_limits<int>::max();
    size_t reference_words = 0;
    for (const std::string& text : references[i]) {
      const Words reference = words(text);
      fewest = std::min(fewest, Ter(hypothesis, reference).edits());
      reference_words += reference.size();
    }
    result.edits += fewest;
    result.ref_len +=
        static_cast<double>(reference_words) / static_cast<double>(references[i].size());
  }
  if (result.ref_len > 0) {
    result.score = 100 * (result.edits / result.ref_len);
  } else {
    result.score = result.edits > 0 ? 100 : 0;
  }
  const auto yes_no = [](bool value) { return value ? "yes" : "no"; };
  result.signature =
      metric_signature(references, {{"case", options.case_sensitive ? "mixed" : "lc"},
                                    {"tok", "tercom"},
                                    {"norm", yes_no(options.normalized)},
                                    {"punct", yes_no(!options.no_punct)},
                                    {"asian", yes_no(options.asian_support)}});
  return result;
}

std::string TerScore::text(int decimals) const {
  return "TER|" + signature + " = " + fixed(score, decimals);
}

}  // namespace heed
