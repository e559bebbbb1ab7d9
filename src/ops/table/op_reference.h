// References in double precision, as plain loops.
//
// They call no kernel and no op: from ops.h come only the types of the options, and the random
// streams of dropout are implemented a second time. An op's reference is defined in its
// NAME_case.cc; this header declares those that other references or tests use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "ops/ops.h"

namespace heed::reference {

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;  // row after row

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  explicit Matrix(double number) : rows(1), cols(1), values{number} {}
  explicit Matrix(ConstMat view);

  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * cols + c)]; }
};

// The random stream of an op; none in inference.
using DropoutKey = std::optional<RandomKey>;

Matrix add(const Matrix& a, const Matrix& b);
Matrix scale(const Matrix& x, double factor);
Matrix columns(const Matrix& x, int64_t begin, int64_t count);
Matrix take_rows(const Matrix& x, std::span<const int32_t> indices);
Matrix dropout(const Matrix& x, const DropoutKey& key, float p);
// 0 or 1 / (1 - p), for the element with this index.
double dropout_factor(const RandomKey& key, float p, uint64_t element);
Matrix gated(const Matrix& gate, const Matrix& up, Activation activation);
// `bias` may be null.
Matrix linear(const Matrix& x, const Matrix& weight, const Matrix* bias);
Matrix activate(const Matrix& x, Activation activation);

struct NormOptions {
  NormKind kind = NormKind::layer_norm;
  const Matrix* gamma = nullptr;
  const Matrix* beta = nullptr;
  double eps = 1e-5, gamma_offset = 0;
};
Matrix norm(const Matrix& x, const NormOptions& options);

// sin and cos of one position, the paper's formula.
double sinusoid(int64_t position, int64_t column, int64_t width, SinusoidLayout layout);

struct RopeOptions {
  std::span<const int32_t> positions;
  int heads = 1, head_dim = 0, rotary_dim = 0;
  double base = 10000, magnitude = 1;
  RopeLayout layout = RopeLayout::half;
};
Matrix rope(const Matrix& x, const RopeOptions& options);

struct AttentionInputs {
  const Matrix* q = nullptr;
  const Matrix* k = nullptr;
  const Matrix* v = nullptr;
  std::span<const int32_t> query_offsets, key_offsets;
  const Matrix* bias_weights = nullptr;  // instead of options.bias.weights
  DropoutKey dropout;
};
struct AttentionResult {
  Matrix out;
  Matrix probabilities;  // one row, laid out as AttentionOptions::probabilities
};
AttentionResult attention(const AttentionInputs& inputs, const AttentionOptions& options);

Matrix pool(const Matrix& x, std::span<const int32_t> offsets, Pooling pooling);

// -log softmax(z / temperature) of one row.
std::vector<double> negative_log_softmax(const Matrix& z, int64_t row, double temperature);
// The losses: sums over rows.
double cross_entropy(const Matrix& logits, std::span<const int32_t> labels,
                     const CrossEntropyOptions& options);
double squared_error(const Matrix& x, const Matrix& target);

}  // namespace heed::reference
