#include "kernels/rows/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/norm.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/simd/reduce-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A row is read from memory once: it stays in the first-level cache for the later loops over it.

void LayerNormRows(const LayerNorm& args) {
  const FloatTag d;
  const int64_t cols = args.cols;
  const float* gamma = args.gamma;
  const float* beta = args.beta;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * cols;
    float* y = args.y + row * cols;
    const float sum = Sum(d, cols, [&](int64_t i, auto io, auto& total) HEED_INLINE_BODY {
      total = hn::Add(total, io.Load(d, x + i));
    });
    const float mean = sum / static_cast<float>(cols);
    const auto center = hn::Set(d, mean);
    // The squares of the deviations, not average(x^2) - mean^2, which cancels when mean is large.
    const float squares = Sum(d, cols, [&](int64_t i, auto io, auto& total) HEED_INLINE_BODY {
      const auto deviation = Keep(io, d, hn::Sub(io.Load(d, x + i), center));
      total = hn::MulAdd(deviation, deviation, total);
    });
    const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(cols) + args.eps);
    const auto scale = hn::Set(d, rstd);
    for_each_vector(d, cols, [&](int64_t i, auto io) HEED_INLINE_BODY {
      const auto h = hn::Mul(hn::Sub(io.Load(d, x + i), center), scale);
      const auto g = io.Load(d, gamma + i);
      const auto v = beta != nullptr ? hn::MulAdd(h, g, io.Load(d, beta + i)) : hn::Mul(h, g);
      io.Store(v, d, y + i);
    });
    if (args.mean != nullptr) args.mean[row] = mean;
    if (args.rstd != nullptr) args.rstd[row] = rstd;
  }
}

void LayerNormBackwardRows(const LayerNormBackward& args) {
  const FloatTag d;
  const int64_t cols = args.cols;
  const float* gamma = args.gamma;
  float* dgamma = args.dgamma;
  float* dbeta = args.dbeta;
  const bool accumulate = args.accumulate;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * cols;
    const float* dy = args.dy + row * cols;
    float* dx = args.dx + row * cols;
    const auto center = hn::Set(d, args.mean[row]);
    const auto scale = hn::Set(d, args.rstd[row]);
    // dy is 0 beyond the end, so both terms are.
    const TwoSums sums =
        SumTwo(d, cols, [&](int64_t i, auto io, auto& sum_g, auto& sum_gh) HEED_INLINE_BODY {
          const auto h = hn::Mul(hn::Sub(io.Load(d, x + i), center), scale);
          const auto g = hn::Mul(io.Load(d, dy + i), io.Load(d, gamma + i));
          sum_g = hn::Add(sum_g, g);
          sum_gh = hn::MulAdd(g, h, sum_gh);
        });
    const auto average_g = hn::Set(d, sums.first / static_cast<float>(cols));
    const auto average_gh = hn::Set(d, sums.second / static_cast<float>(cols));
    for_each_vector(d, cols, [&](int64_t i, auto io) HEED_INLINE_BODY {
      const auto h = hn::Mul(hn::Sub(io.Load(d, x + i), center), scale);
      const auto v = io.Load(d, dy + i);
      const auto g = hn::Mul(v, io.Load(d, gamma + i));
      const auto rest = hn::NegMulAdd(h, average_gh, hn::Sub(g, average_g));
      const auto old = accumulate ? io.Load(d, dx + i) : hn::Zero(d);
      io.Store(hn::MulAdd(scale, rest, old), d, dx + i);
      if (dgamma != nullptr) io.Store(hn::MulAdd(v, h, io.Load(d, dgamma + i)), d, dgamma + i);
      if (dbeta != nullptr) io.Store(hn::Add(v, io.Load(d, dbeta + i)), d, dbeta + i);
    });
  }
}

void RmsNormRows(const RmsNorm& args) {
  const FloatTag d;
  const int64_t cols = args.cols;
  const float* gamma = args.gamma;
  const auto offset = hn::Set(d, args.gamma_offset);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * cols;
    float* y = args.y + row * cols;
    const float squares = Sum(d, cols, [&](int64_t i, auto io, auto& total) HEED_INLINE_BODY {
      const auto v = io.Load(d, x + i);
      total = hn::MulAdd(v, v, total);
    });
    const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(cols) + args.eps);
    const auto scale = hn::Set(d, rstd);
    for_each_vector(d, cols, [&](int64_t i, auto io) HEED_INLINE_BODY {
      const auto h = hn::Mul(io.Load(d, x + i), scale);
      io.Store(hn::Mul(h, hn::Add(offset, io.Load(d, gamma + i))), d, y + i);
    });
    if (args.rstd != nullptr) args.rstd[row] = rstd;
  }
}

void RmsNormBackwardRows(const RmsNormBackward& args) {
  const FloatTag d;
  const int64_t cols = args.cols;
  const float* gamma = args.gamma;
  float* dgamma = args.dgamma;
  const bool accumulate = args.accumulate;
  const auto offset = hn::Set(d, args.gamma_offset);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * cols;
    const float* dy = args.dy + row * cols;
    float* dx = args.dx + row * cols;
    const auto scale = hn::Set(d, args.rstd[row]);
    const float sum = Sum(d, cols, [&](int64_t i, auto io, auto& sum_gh) HEED_INLINE_BODY {
      const auto h = hn::Mul(io.Load(d, x + i), scale);
      const auto g = hn::Mul(io.Load(d, dy + i), hn::Add(offset, io.Load(d, gamma + i)));
      sum_gh = hn::MulAdd(g, h, sum_gh);
    });
    const auto average_gh = hn::Set(d, sum / static_cast<float>(cols));
    for_each_vector(d, cols, [&](int64_t i, auto io) HEED_INLINE_BODY {
      const auto h = hn::Mul(io.Load(d, x + i), scale);
      const auto v = io.Load(d, dy + i);
      const auto g = hn::Mul(v, hn::Add(offset, io.Load(d, gamma + i)));
      const auto old = accumulate ? io.Load(d, dx + i) : hn::Zero(d);
      io.Store(hn::MulAdd(scale, hn::NegMulAdd(h, average_gh, g), old), d, dx + i);
      if (dgamma != nullptr) io.Store(hn::MulAdd(v, h, io.Load(d, dgamma + i)), d, dgamma + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);
HWY_EXPORT(RmsNormRows);
HWY_EXPORT(RmsNormBackwardRows);

void layer_norm(const LayerNorm& args) { HWY_DYNAMIC_DISPATCH(LayerNormRows)(args); }

void layer_norm_backward(const LayerNormBackward& args) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)(args);
}

void rms_norm(const RmsNorm& args) { HWY_DYNAMIC_DISPATCH(RmsNormRows)(args); }

void rms_norm_backward(const RmsNormBackward& args) {
  HWY_DYNAMIC_DISPATCH(RmsNormBackwardRows)(args);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
