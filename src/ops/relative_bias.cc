#include "ops/relative_bias.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "ops/weight_gradient.h"

namespace heed {

int64_t RelativeBias::weight_rows() const {
  switch (kind) {
    case RelativeBiasKind::t5:
      return t5_rule.buckets;
    case RelativeBiasKind::kerple:
      return 2;
    default:
      return 0;
  }
}

void check(const RelativeBias& bias, int heads) {
  if (bias.kind == RelativeBiasKind::t5) {
    const T5Buckets& rule = bias.t5_rule;
    const int exact =
        rule.buckets / (rule.bidirectional ? 4 : 2);  // distances with one bucket each
    HEED_CHECK(exact >= 1 && rule.max_distance > exact,
               "relative bias: t5_max_distance must exceed the distances with one bucket each");
  }
  const int64_t rows = bias.weight_rows();
  HEED_CHECK(rows == 0 || (bias.weights.value.rows >= rows && bias.weights.value.cols == heads),
             "relative bias: the weights must be [weight_rows, heads]");
}

int64_t RelativeDistances::stride() const { return back + 1 + ahead + 2 * kernels::kBiasPadding; }
int64_t RelativeDistances::center() const { return back + kernels::kBiasPadding; }

void fill_relative_bias(const RelativeBias& bias, int heads, const RelativeDistances& d,
                        float* out) {
  std::fill_n(out, heads * d.stride(), 0.0f);
  const auto fill = [&](const auto& value) {  // value(head) returns a function of the distance
    for (int head = 0; head < heads; ++head) {
      const auto at = value(head);
      float* row = out + head * d.stride() + d.center();
      for (int64_t distance = -d.back; distance <= d.ahead; ++distance)
        row[distance] = at(distance);
    }
  };
  const ConstMat& w = bias.weights.value;
  switch (bias.kind) {
    case RelativeBiasKind::none:
      break;
    case RelativeBiasKind::t5:
      fill([&](int head) {
        return
            [&, head](int64_t distance) { return w.row(t5_bucket(distance, bias.t5_rule))[head]; };
      });
      break;
    case RelativeBiasKind::alibi:
      fill([&](int head) {
        return [slope = alibi_slope(head, heads)](int64_t distance) {
          return -slope * static_cast<float>(std::abs(distance));
        };
      });
      break;
    case RelativeBiasKind::kerple:
      fill([&](int head) {
        return [r1 = std::exp(w.row(0)[head]), r2 = std::exp(w.row(1)[head])](int64_t distance) {
          return -r1 * std::log1p(r2 * static_cast<float>(std::abs(distance)));
        };
      });
      break;
  }
}

namespace {

// With b = -r1 · log(1 + r2 · |distance|):  db/d log r1 = b,
// db/d log r2 = -r1 · r2 |distance| / (1 + r2 |distance|).
void kerple_backward(ConstMat w, int heads, const RelativeDistances& d, const float* d_bias,
                     Mat d_weights) {
  for (int head = 0; head < heads; ++head) {
    const double r1 = std::exp(double{w.row(0)[head]}), r2 = std::exp(double{w.row(1)[head]});
    const float* row = d_bias + head * d.stride() + d.center();
    double d_log_r1 = 0, d_log_r2 = 0;
    for (int64_t distance = -d.back; distance <= d.ahead; ++distance) {
      const double x = r2 * static_cast<double>(std::abs(distance));
      d_log_r1 -= row[distance] * r1 * std::log1p(x);
      d_log_r2 -= row[distance] * r1 * x / (1 + x);
    }
    d_weights.row(0)[head] += static_cast<float>(d_log_r1);
    d_weights.row(1)[head] += static_cast<float>(d_log_r2);
  }
}

}  // namespace

void relative_bias_backward(Ctx& ctx, const RelativeBias& bias, int heads,
                            const RelativeDistances& d, const float* d_bias) {
  if (!bias.weights.gradient) return;
  const Mat d_weights = zeroed_gradient(ctx, bias.weights);
  if (ctx.measuring()) return;
  // One thread, distances in order: the sum is the same for any number of threads.
  switch (bias.kind) {
    case RelativeBiasKind::t5:
      for (int64_t distance = -d.back; distance <= d.ahead; ++distance) {
        const float* column = d_bias + d.center() + distance;
        float* row = d_weights.row(t5_bucket(distance, bias.t5_rule));
        for (int head = 0; head < heads; ++head) row[head] += column[head * d.stride()];
      }
      break;
    case RelativeBiasKind::kerple:
      kerple_backward(bias.weights.value, heads, d, d_bias, d_weights);
      break;
    case RelativeBiasKind::none:
    case RelativeBiasKind::alibi:
      break;
  }
}

}  // namespace heed
