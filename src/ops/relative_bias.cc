#include "ops/relative_bias.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "ops/weight_gradient.h"

namespace heed {

int64_t RelativeBias::weight_rows() const {
  return kind == RelativeBiasKind::t5 ? t5_rule.buckets : 0;
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
  }
}

void relative_bias_backward(Ctx& ctx, const RelativeBias& bias, int heads,
                            const RelativeDistances& d, const float* d_bias) {
  if (!bias.weights.gradient) return;
  const Mat d_weights = zeroed_gradient(ctx, bias.weights);
  if (ctx.measuring()) return;
  // One thread, distances in order: the sum is the same for any number of threads.
  for (int64_t distance = -d.back; distance <= d.ahead; ++distance) {
    const float* column = d_bias + d.center() + distance;
    if (bias.kind == RelativeBiasKind::t5) {
      float* row = d_weights.row(t5_bucket(distance, bias.t5_rule));
      for (int head = 0; head < heads; ++head) row[head] += column[head * d.stride()];
    }
  }
}

}  // namespace heed
