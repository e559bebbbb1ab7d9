// The ops once more, slowly: plain loops in double precision, to hold the fast ones against.
//
// Nothing here calls a kernel or an op. From ops.h come the options' types alone; what those
// options mean is written down a second time, and so are the streams that dropout draws from.
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

// The stream that an op draws from; none in inference, where nothing is dropped.
using DropoutKey = std::optional<RandomKey>;

double activate(Activation activation, double x);
Matrix add(const Matrix& a, const Matrix& b);
Matrix scale(const Matrix& x, double factor);
Matrix columns(const Matrix& x, int64_t begin, int64_t count);
Matrix take_rows(const Matrix& x, std::span<const int32_t> indices);
Matrix dropout(const Matrix& x, const DropoutKey& key, float p);
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
  const Matrix* t5_table = nullptr;  // stands for the table in options.t5_bias
  DropoutKey dropout;
};
struct AttentionResult {
  Matrix out;
  Matrix probabilities;  // one row, laid out as AttentionOptions::probabilities
};
AttentionResult attention(const AttentionInputs& inputs, const AttentionOptions& options);

Matrix pool(const Matrix& x, std::span<const int32_t> offsets, Pooling pooling);

// The losses: sums over rows.
double cross_entropy(const Matrix& logits, std::span<const int32_t> labels,
                     const CrossEntropyOptions& options);
double kl_divergence(const Matrix& student, const Matrix& teacher, double temperature);
// Of the upper half of the rows and the lower one: the mean of the divergences both ways.
double twin_divergence(const Matrix& logits, std::span<const int32_t> labels);
double squared_error(const Matrix& x, const Matrix& target);
double cosine_distance(const Matrix& x, const Matrix& target);

}  // namespace heed::reference
