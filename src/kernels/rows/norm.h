// Layer norm and RMS norm over the rows of a matrix, and their gradients.
//
// All matrices are [rows, cols] and contiguous. A row's result depends on that row alone, bit for
// bit. The gradients of gamma and beta are sums over rows, added in the order of the rows.
#pragma once

#include <cstdint>

namespace heed::kernels {

// y = (x - mean) * rstd * gamma + beta with rstd = 1 / sqrt(variance + eps) (Ba et al., 2016).
struct LayerNorm {
  const float* x;
  const float* gamma;           // [cols]
  const float* beta = nullptr;  // [cols], or null for none
  float* y;                     // may equal x
  float* mean = nullptr;        // [rows], or null: kept for the gradient
  float* rstd = nullptr;        // [rows], or null
  int64_t rows, cols;
  float eps;
};
void layer_norm(const LayerNorm& args);

// With h = (x - mean) * rstd and g = dy * gamma:
//   dx = rstd * (g - average(g) - h * average(g * h)),  dgamma += sum(dy * h),  dbeta += sum(dy).
struct LayerNormBackward {
  const float* x;
  const float* gamma;
  const float* mean;
  const float* rstd;
  const float* dy;
  float* dx;                // may equal dy when not accumulating
  bool accumulate = false;  // add to dx instead of writing it
  float* dgamma = nullptr;  // [cols], or null; these rows' sums are added to what is there
  float* dbeta = nullptr;   // likewise
  int64_t rows, cols;
};
void layer_norm_backward(const LayerNormBackward& args);

// y = x * rstd * (gamma_offset + gamma) with rstd = 1 / sqrt(average(x^2) + eps)
// (Zhang & Sennrich, 2019).
struct RmsNorm {
  const float* x;
  const float* gamma;
  float gamma_offset = 0;  // 1 for models that store gamma - 1 (Gemma)
  float* y;                // may equal x
  float* rstd = nullptr;   // [rows], or null
  int64_t rows, cols;
  float eps;
};
void rms_norm(const RmsNorm& args);

// With h = x * rstd and g = dy * (gamma_offset + gamma):
//   dx = rstd * (g - h * average(g * h)),  dgamma += sum(dy * h).
struct RmsNormBackward {
  const float* x;
  const float* gamma;
  float gamma_offset = 0;
  const float* rstd;
  const float* dy;
  float* dx;                // may equal dy when not accumulating
  bool accumulate = false;  // add to dx instead of writing it
  float* dgamma = nullptr;  // [cols], or null; these rows' sums are added to what is there
  int64_t rows, cols;
};
void rms_norm_backward(const RmsNormBackward& args);

}  // namespace heed::kernels
