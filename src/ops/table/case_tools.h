// Helpers for the op cases (NAME_case.cc).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "ops/table/op_table.h"

namespace heed::op_cases {

using reference::Matrix;

using Vars = std::span<const Var>;
using Weights = std::span<const Weight>;

// Enough elements for three threads to share; odd on purpose.
inline constexpr int64_t kManyRows = 301, kManyCols = 172;

// A gradient_scale for losses that differs from the default.
inline constexpr float kGradientScale = 0.125f;

// Finite-difference step for ReLU: with hundreds of thousands of sums, some are close to the kink.
inline constexpr double kReluDifference = 1e-7;

// ---- random side inputs ------------------------------------------------------------------------

// Streams of the table's generator, one for each kind of side input.
enum Stream : uint32_t { kTokens = 1000, kPositions, kTypes, kLabels, kTargets };

// The i-th number of a stream, in [0, limit). A function of the index, so that row 5 alone draws
// what row 5 of a batch draws.
inline int32_t drawn(Stream stream, int64_t i, int64_t limit) {
  const RandomKey key{kTableSeed, 0, stream};
  return static_cast<int32_t>(random_block(key, static_cast<uint64_t>(i))[0] % limit);
}

inline std::vector<int32_t> drawn_list(Stream stream, RowRange rows, int64_t limit) {
  std::vector<int32_t> list;
  for (int64_t i = rows.begin; i < rows.end; ++i) list.push_back(drawn(stream, i, limit));
  return list;
}

inline std::vector<int32_t> drawn_labels(RowRange rows, int64_t classes, bool ignore_some) {
  std::vector<int32_t> labels = drawn_list(kLabels, rows, classes);
  for (int64_t row = rows.begin; ignore_some && row < rows.end; ++row) {
    if (row % 3 == 1) labels[static_cast<size_t>(row - rows.begin)] = kIgnoreLabel;
  }
  return labels;
}

// Numbers without a gradient: a teacher's hidden states, a regression's targets.
struct Constants {
  Constants(int64_t rows, int64_t cols, Stream stream, float deviation = 1)
      : values(static_cast<size_t>(rows * cols)), view(values.data(), rows, cols) {
    Random random({kTableSeed, 1, stream});
    for (float& value : values) value = deviation * random.normal();
  }
  Constants(const Constants&) = delete;

  std::vector<float> values;
  ConstMat view;
};

inline float fan_in_deviation(int64_t in) { return 1 / std::sqrt(static_cast<float>(in)); }

inline std::vector<int32_t> offsets_of(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> offsets = {0};
  for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// ---- names -------------------------------------------------------------------------------------

// "bias gelu slice" from the words whose condition holds; "plain" when none does.
class Words {
 public:
  Words& add(bool condition, const std::string& word) {
    if (!condition) return *this;
    if (!text_.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  std::string text() const { return text_.empty() ? "plain" : text_; }

 private:
  std::string text_;
};

inline std::string dims(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text;
}

inline std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

inline std::string loss_variant(const CrossEntropyOptions& o, bool ignore_some, Words words = {}) {
  return words.add(o.label_smoothing > 0, "label_smoothing " + number(o.label_smoothing))
      .add(o.soft_cap > 0, "soft_cap " + number(o.soft_cap))
      .add(ignore_some, "ignored rows")
      .text();
}

// ---- operands and results ----------------------------------------------------------------------

inline OpResult output(const Var& y) { return {{y}, {}, {}}; }
inline OpResult loss_output(const LossSum& loss) { return {{}, {}, loss}; }

// A copy for an op that works in place: a test runs a case several times on the same operands.
inline Var copy_of_input(Ctx& ctx, const Var& x) { return scale(ctx, x, 1); }

inline const Matrix* optional_matrix(const std::vector<Matrix>& list, size_t i) {
  return i < list.size() ? &list[i] : nullptr;
}

// ---- parts -------------------------------------------------------------------------------------

inline int64_t count(RowRange range) { return range.end - range.begin; }

// For an op whose rows are independent: the first row, a few in the middle and the last one.
// make(rows) builds the case of these rows alone.
inline void set_row_parts(OpCase& op, int64_t rows, const std::function<OpCase(RowRange)>& make) {
  if (rows == 0) return;
  const size_t inputs = op.inputs.size();
  op.parts = [=] {
    std::vector<OpPart> parts;
    for (const RowRange range : {RowRange{0, 1}, RowRange{rows / 2, std::min(rows / 2 + 3, rows)},
                                 RowRange{rows - 1, rows}}) {
      parts.push_back({make(range), std::vector<RowRange>(inputs, range), range});
    }
    return parts;
  };
}

}  // namespace heed::op_cases
