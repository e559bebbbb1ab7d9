#include "kernels/rows/softmax.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/softmax.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/reduce-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What to subtract from x [n] before exponentials: its maximum, so that none overflows; but not an
// infinite one, which would give NaN where -infinity should give 0.
HWY_INLINE float ShiftOf(FloatTag d, const float* x, int64_t n) {
  const float max = MaxOf(d, n, x);
  return std::isinf(max) ? 0.0f : max;
}

HWY_INLINE void Scale(FloatTag d, float factor, float* y, int64_t n) {
  const auto v = hn::Set(d, factor);
  for_each_vector(d, n, [&](int64_t i, auto io) HEED_INLINE_BODY {
    io.Store(hn::Mul(v, io.Load(d, y + i)), d, y + i);
  });
}

void Softmax(const float* x, float* y, int64_t n) {
  const FloatTag d;
  const auto shift = hn::Set(d, ShiftOf(d, x, n));
  const float sum = Sum(d, n, [&](int64_t i, auto io, auto& total) HEED_INLINE_BODY {
    const auto e = Exp(d, hn::Sub(io.Load(d, x + i), shift));
    io.Store(e, d, y + i);
    total = hn::Add(total, Keep(io, d, e));
  });
  Scale(d, sum == 0 ? 0.0f : 1.0f / sum, y, n);
}

float LogSumExp(const float* x, int64_t n) {
  const FloatTag d;
  const float max = ShiftOf(d, x, n);
  const auto shift = hn::Set(d, max);
  const float sum = Sum(d, n, [&](int64_t i, auto io, auto& total) HEED_INLINE_BODY {
    total = hn::Add(total, Keep(io, d, Exp(d, hn::Sub(io.Load(d, x + i), shift))));
  });
  return max + std::log(sum);
}

// What stands between the raw logits and the softmax: z = Apply(logit). Slope(z) is dz/d(logit).
struct NoCap {
  static constexpr bool kIsIdentity = true;
  template <class V>
  HWY_INLINE V Apply(FloatTag, V logit) const {
    return logit;
  }
  template <class V>
  HWY_INLINE V ApplyAndShift(FloatTag, V logit, V shift) const {
    return hn::Sub(logit, shift);
  }
  template <class V>
  HWY_INLINE V Slope(FloatTag d, V) const {
    return hn::Set(d, 1.0f);
  }
};

struct SoftCap {
  static constexpr bool kIsIdentity = false;
  float cap, inverse;
  template <class V>
  HWY_INLINE V Apply(FloatTag d, V logit) const {
    return hn::Mul(hn::Set(d, cap), Tanh(d, hn::Mul(logit, hn::Set(d, inverse))));
  }
  // Apply(logit) - shift, rounded once: a compiler might fuse the two in one loop and not in
  // another, and then the loss would depend on whether the gradient is computed too.
  template <class V>
  HWY_INLINE V ApplyAndShift(FloatTag d, V logit, V shift) const {
    return hn::MulSub(hn::Set(d, cap), Tanh(d, hn::Mul(logit, hn::Set(d, inverse))), shift);
  }
  template <class V>
  HWY_INLINE V Slope(FloatTag d, V z) const {
    const V t = hn::Mul(z, hn::Set(d, inverse));
    return hn::NegMulAdd(t, t, hn::Set(d, 1.0f));
  }
};

struct CrossEntropyRow {
  float* logits;
  int64_t n;
  int32_t label;
};

// The loss of one row. Three passes: the maximum; the sums, which leaves e^(z - max) in place of
// the logits (or z, if there is a cap, because the gradient needs it); the gradient.
template <class Cap>
HWY_INLINE float CrossEntropyOf(const CrossEntropyRow& row, const CrossEntropy& args, Cap cap) {
  const FloatTag d;
  float* logits = row.logits;
  const bool gradient = args.gradient;
  // A cap is monotonic, so the largest z belongs to the largest logit.
  const auto shift = cap.Apply(d, hn::Set(d, MaxOf(d, row.n, logits)));
  const auto label_z = cap.Apply(d, hn::Set(d, logits[row.label]));

  const TwoSums sums =
      SumTwo(d, row.n, [&](int64_t i, auto io, auto& sum_exp, auto& sum_z) HEED_INLINE_BODY {
        const auto logit = io.Load(d, logits + i);
        const auto shifted = cap.ApplyAndShift(d, logit, shift);
        const auto e = Exp(d, shifted);
        if (gradient) io.Store(Cap::kIsIdentity ? e : cap.Apply(d, logit), d, logits + i);
        sum_exp = hn::Add(sum_exp, Keep(io, d, e));
        sum_z = hn::Add(sum_z, Keep(io, d, shifted));
      });

  const double smoothing = args.label_smoothing, n = static_cast<double>(row.n);
  const double label_log = hn::GetLane(hn::Sub(label_z, shift));
  double loss = std::log(static_cast<double>(sums.first)) - (1 - smoothing) * label_log;
  // Only if asked for: one logit of -infinity makes the average infinite.
  if (smoothing > 0) loss -= smoothing * sums.second / n;

  if (gradient) {
    const double scale = args.gradient_scale;
    const auto factor = hn::Set(d, static_cast<float>(scale / sums.first));
    const auto everywhere = hn::Set(d, static_cast<float>(scale * smoothing / n));
    for_each_vector(d, row.n, [&](int64_t i, auto io) HEED_INLINE_BODY {
      const auto kept = io.Load(d, logits + i);
      const auto e = Cap::kIsIdentity ? kept : Exp(d, hn::Sub(kept, shift));
      const auto v = hn::MulSub(e, factor, everywhere);
      io.Store(Cap::kIsIdentity ? v : hn::Mul(v, cap.Slope(d, kept)), d, logits + i);
    });
    const double slope = hn::GetLane(cap.Slope(d, label_z));
    logits[row.label] -= static_cast<float>(scale * (1 - smoothing) * slope);
  }
  return static_cast<float>(loss);
}

void CrossEntropyRows(const CrossEntropy& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    const CrossEntropyRow row{args.logits + r * args.stride, args.cols, args.labels[r]};
    if (row.label < 0) {
      args.loss[r] = 0;
      if (args.gradient) std::fill(row.logits, row.logits + row.n, 0.0f);
    } else if (args.soft_cap > 0) {
      args.loss[r] = CrossEntropyOf(row, args, SoftCap{args.soft_cap, 1.0f / args.soft_cap});
    } else {
      args.loss[r] = CrossEntropyOf(row, args, NoCap{});
    }
  }
}

// With t and s the shifted logits of teacher and student, divided by T, and Z the sums of their
// exponentials: sum(p_t (log p_t - log p_s)) = sum(e^t (t - s)) / Z_t - log Z_t + log Z_s.
HWY_INLINE float KlDivergenceOf(const KlDivergence& args, float* student, const float* teacher) {
  const FloatTag d;
  const int64_t n = args.cols;
  const auto inverse = hn::Set(d, 1.0f / args.temperature);
  const auto student_max = hn::Set(d, MaxOf(d, n, student));
  const auto teacher_max = hn::Set(d, MaxOf(d, n, teacher));

  const TwoSums of_teacher =
      SumTwo(d, n, [&](int64_t i, auto io, auto& sum_exp, auto& sum_difference) HEED_INLINE_BODY {
        const auto t = hn::Mul(hn::Sub(io.Load(d, teacher + i), teacher_max), inverse);
        const auto s = hn::Mul(hn::Sub(io.Load(d, student + i), student_max), inverse);
        const auto e = Keep(io, d, Exp(d, t));
        sum_exp = hn::Add(sum_exp, e);
        // What the teacher excludes adds nothing, also where t is -infinity.
        const auto term = hn::Mul(e, hn::Sub(t, s));
        sum_difference = hn::Add(sum_difference, hn::IfThenZeroElse(hn::Eq(e, hn::Zero(d)), term));
      });
  const bool gradient = args.gradient;
  const float student_sum = Sum(d, n, [&](int64_t i, auto io, auto& total) HEED_INLINE_BODY {
    const auto e = Exp(d, hn::Mul(hn::Sub(io.Load(d, student + i), student_max), inverse));
    if (gradient) io.Store(e, d, student + i);
    total = hn::Add(total, Keep(io, d, e));
  });

  const double temperature = args.temperature;
  const double difference = static_cast<double>(of_teacher.second) / of_teacher.first;
  const double divergence = difference - std::log(static_cast<double>(of_teacher.first)) +
                            std::log(static_cast<double>(student_sum));
  if (gradient) {
    // d(loss)/d(student) = T (p_s - p_t)
    const double scale = temperature * args.gradient_scale;
    const auto student_factor = hn::Set(d, static_cast<float>(scale / student_sum));
    const auto teacher_factor = hn::Set(d, static_cast<float>(scale / of_teacher.first));
    for_each_vector(d, n, [&](int64_t i, auto io) HEED_INLINE_BODY {
      const auto t = hn::Mul(hn::Sub(io.Load(d, teacher + i), teacher_max), inverse);
      const auto p_t = hn::Mul(Exp(d, t), teacher_factor);
      io.Store(hn::MulSub(io.Load(d, student + i), student_factor, p_t), d, student + i);
    });
  }
  // Equal distributions may come out a rounding error below 0. A NaN stays one.
  const double loss = temperature * temperature * divergence;
  return loss < 0 ? 0.0f : static_cast<float>(loss);
}

void KlDivergenceRows(const KlDivergence& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    args.loss[r] =
        KlDivergenceOf(args, args.student + r * args.stride, args.teacher + r * args.stride);
  }
}

struct TwinTerms {
  float max;
  double sum_exp;  // of the logits - max
  double cross_entropy;
};

// The logits stay as they are.
HWY_INLINE TwinTerms EvaluateTwin(const float* logits, int32_t label,
                                  const TwinCrossEntropy& args) {
  const FloatTag d;
  const float max = ShiftOf(d, logits, args.cols);
  const auto shift = hn::Set(d, max);
  const TwoSums sums =
      SumTwo(d, args.cols, [&](int64_t i, auto io, auto& sum_exp, auto& sum_z) HEED_INLINE_BODY {
        const auto z = hn::Sub(io.Load(d, logits + i), shift);
        sum_exp = hn::Add(sum_exp, Keep(io, d, Exp(d, z)));
        sum_z = hn::Add(sum_z, Keep(io, d, z));
      });
  const double smoothing = args.label_smoothing, sum_exp = sums.first;
  double loss = std::log(sum_exp) - (1 - smoothing) * (static_cast<double>(logits[label]) - max);
  if (smoothing > 0) loss -= smoothing * sums.second / static_cast<double>(args.cols);
  return {max, sum_exp, loss};
}

// With r = log p - log q: sum(p r) and -sum(q r) are the two divergences, and the gradient of half
// their sum at the first logits is (p - q + p (r - sum(p r))) / 2, at the second the same with the
// roles changed.
HWY_INLINE void TwinCrossEntropyOf(const TwinCrossEntropy& args, int64_t row) {
  const FloatTag d;
  const int64_t n = args.cols;
  const int32_t label = args.labels[row];
  float* first = args.first + row * args.stride;
  float* second = args.second + row * args.stride;
  const TwinTerms a = EvaluateTwin(first, label, args), b = EvaluateTwin(second, label, args);
  const auto a_max = hn::Set(d, a.max), b_max = hn::Set(d, b.max);
  const auto a_factor = hn::Set(d, static_cast<float>(1 / a.sum_exp));
  const auto b_factor = hn::Set(d, static_cast<float>(1 / b.sum_exp));
  const auto offset = hn::Set(d, static_cast<float>(std::log(a.sum_exp / b.sum_exp)));
  // What both exclude has no ratio, and no part in either sum.
  const auto ratio = [&](auto z_a, auto z_b) HEED_INLINE_BODY {
    const auto r = hn::Sub(hn::Sub(z_a, z_b), offset);
    return hn::IfThenZeroElse(hn::IsNaN(r), r);
  };
  const TwoSums sums =
      SumTwo(d, n, [&](int64_t i, auto io, auto& of_p, auto& of_q) HEED_INLINE_BODY {
        const auto z_a = hn::Sub(io.Load(d, first + i), a_max);
        const auto z_b = hn::Sub(io.Load(d, second + i), b_max);
        const auto r = Keep(io, d, ratio(z_a, z_b));
        of_p = hn::MulAdd(Exp(d, z_a), r, of_p);
        of_q = hn::NegMulAdd(Exp(d, z_b), r, of_q);
      });
  const double p_from_q = sums.first / a.sum_exp, q_from_p = sums.second / b.sum_exp;
  args.loss[row] = static_cast<float>(a.cross_entropy + b.cross_entropy);
  args.divergence[row] = static_cast<float>((p_from_q + q_from_p) / 2);
  if (!args.gradient) return;

  const double scale = args.gradient_scale, smoothing = args.label_smoothing;
  const auto all = hn::Set(d, args.gradient_scale);
  const auto half = hn::Set(d, args.gradient_scale * args.divergence_weight / 2);
  const auto everywhere =
      hn::Set(d, static_cast<float>(scale * smoothing / static_cast<double>(n)));
  const auto p_mean = hn::Set(d, static_cast<float>(p_from_q));
  const auto q_mean = hn::Set(d, static_cast<float>(q_from_p));
  for_each_vector(d, n, [&](int64_t i, auto io) HEED_INLINE_BODY {
    const auto z_a = hn::Sub(io.Load(d, first + i), a_max);
    const auto z_b = hn::Sub(io.Load(d, second + i), b_max);
    const auto p = hn::Mul(Exp(d, z_a), a_factor), q = hn::Mul(Exp(d, z_b), b_factor);
    const auto r = ratio(z_a, z_b), apart = hn::Sub(p, q);
    const auto at_first = hn::MulAdd(p, hn::Sub(r, p_mean), apart);
    const auto at_second = hn::MulAdd(q, hn::Add(r, q_mean), apart);  // with the sign changed
    io.Store(hn::MulAdd(half, at_first, hn::MulSub(all, p, everywhere)), d, first + i);
    io.Store(hn::NegMulAdd(half, at_second, hn::MulSub(all, q, everywhere)), d, second + i);
  });
  const auto at_label = static_cast<float>(scale * (1 - smoothing));
  first[label] -= at_label, second[label] -= at_label;
}

void TwinCrossEntropyRows(const TwinCrossEntropy& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    if (args.labels[r] >= 0) {
      TwinCrossEntropyOf(args, r);
      continue;
    }
    args.loss[r] = args.divergence[r] = 0;
    if (!args.gradient) continue;
    std::fill_n(args.first + r * args.stride, args.cols, 0.0f);
    std::fill_n(args.second + r * args.stride, args.cols, 0.0f);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(Softmax);
HWY_EXPORT(LogSumExp);
HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(KlDivergenceRows);
HWY_EXPORT(TwinCrossEntropyRows);

void softmax(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Softmax)(x, y, n); }

float log_sum_exp(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(LogSumExp)(x, n); }

void cross_entropy(const CrossEntropy& args) {
  for (int64_t r = 0; r < args.rows; ++r)
    HEED_DCHECK(args.labels[r] < args.cols, "labels must be below the vocabulary size");
  HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(args);
}

void kl_divergence(const KlDivergence& args) { HWY_DYNAMIC_DISPATCH(KlDivergenceRows)(args); }

void twin_cross_entropy(const TwinCrossEntropy& args) {
  for (int64_t r = 0; r < args.rows; ++r)
    HEED_DCHECK(args.labels[r] < args.cols, "labels must be below the vocabulary size");
  HWY_DYNAMIC_DISPATCH(TwinCrossEntropyRows)(args);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
