// What the factories of cases are made of.
#pragma once

#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "ops/table/op_cases.h"

namespace heed::op_cases {

using reference::Matrix;

using Vars = std::span<const Var>;
using Weights = std::span<const Weight>;

inline constexpr double kFloatBytes = sizeof(float);

// Streams of the table's generator, one for each kind of side input.
enum Stream : uint32_t { kTokens = 1000, kPositions, kTypes, kLabels, kTargets };

// The i-th number of a stream, in [0, limit). By index, so that row 5 alone draws what row 5 of a
// batch draws.
inline int32_t drawn(Stream stream, int64_t i, int64_t limit) {
  const RandomKey key{kTableSeed, 0, stream};
  return static_cast<int32_t>(random_block(key, static_cast<uint64_t>(i))[0] % limit);
}

inline std::vector<int32_t> drawn_list(Stream stream, RowRange rows, int64_t limit) {
  std::vector<int32_t> list;
  for (int64_t i = rows.begin; i < rows.end; ++i) list.push_back(drawn(stream, i, limit));
  return list;
}

// Numbers that are neither input nor weight: a teacher's, a regression's targets.
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

// "bias gelu dropout" from the words whose condition holds; "plain" when none does.
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

inline const Matrix* optional_matrix(const std::vector<Matrix>& list, size_t i) {
  return i < list.size() ? &list[i] : nullptr;
}

inline float fan_in_deviation(int64_t in) { return 1 / std::sqrt(static_cast<float>(in)); }

}  // namespace heed::op_cases
