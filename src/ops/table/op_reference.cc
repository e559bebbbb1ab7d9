#include "ops/table/op_reference.h"

#include <array>
#include <cmath>

#include "kernels/rows/activation_testing.h"

namespace heed::reference {

// As kernels/rows/dropout.h: 128 elements share 16 blocks of 128 bits. Each block holds eight
// 16-bit numbers; the n-th of them (from the lowest of word 0) is for element 16 n + (the block's
// index among the 16).
double dropout_factor(const RandomKey& key, float p, uint64_t element) {
  const uint64_t group = element / 128, within = element % 128;
  const std::array<uint32_t, 4> words = random_block(key, 16 * group + within % 16);
  const uint64_t half = within / 16;
  const uint32_t word = words[half / 2];
  const uint32_t bits = half % 2 == 0 ? word & 0xFFFF : word >> 16;
  const auto threshold = static_cast<uint32_t>(std::lround(65536.0 * double{p}));
  return bits >= threshold ? 65536.0 / (65536.0 - threshold) : 0.0;
}

Matrix::Matrix(ConstMat view) : Matrix(view.rows, view.cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) at(r, c) = view.row(r)[c];
  }
}

Matrix activate(const Matrix& x, Activation activation) {
  Matrix y = x;
  for (double& value : y.values) value = kernels::activation_reference(activation, value);
  return y;
}

Matrix columns(const Matrix& x, int64_t begin, int64_t count) {
  Matrix y(x.rows, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < count; ++c) y.at(r, c) = x.at(r, begin + c);
  }
  return y;
}

Matrix dropout(const Matrix& x, const DropoutKey& key, float p) {
  Matrix y = x;
  if (!key || p <= 0) return y;
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] *= dropout_factor(*key, p, i);
  return y;
}

}  // namespace heed::reference
