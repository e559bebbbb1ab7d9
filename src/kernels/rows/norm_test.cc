#include "kernels/rows/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/simd/row_testing.h"

namespace heed::kernels {
namespace {

constexpr float kEps = 1e-5f;
constexpr int64_t kRows = 3;

// Both norms in double precision. An RMS norm is a layer norm whose mean is 0 by decree.
struct Reference {
  Doubles y, mean, rstd, dx, dgamma, dbeta;
};

struct Inputs {
  Floats x, gamma, beta, dy;
  int64_t rows, cols;
};

Inputs make_inputs(int64_t rows, int64_t cols, float mean = 0) {
  Inputs in{random_row(rows * cols, 2, 1),
            random_row(cols, 1, 2),
            random_row(cols, 1, 3),
            random_row(rows * cols, 1, 4),
            rows,
            cols};
  for (float& value : in.x) value += mean;
  return in;
}

Reference reference(const Inputs& in, bool subtract_mean, double gamma_offset) {
  const int64_t cols = in.cols;
  const double n = static_cast<double>(cols);
  Reference ref{.y = Doubles(in.x.size()),
                .mean = {},
                .rstd = {},
                .dx = Doubles(in.x.size()),
                .dgamma = Doubles(in.gamma.size()),
                .dbeta = Doubles(in.gamma.size())};
  for (int64_t row = 0; row < in.rows; ++row) {
    const float* x = in.x.data() + row * cols;
    const float* dy = in.dy.data() + row * cols;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < cols && subtract_mean; ++i) mean += x[i] / n;
    for (int64_t i = 0; i < cols; ++i) variance += (x[i] - mean) * (x[i] - mean) / n;
    const double rstd = 1 / std::sqrt(variance + kEps);
    double average_g = 0, average_gh = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double h = (x[i] - mean) * rstd, gamma = gamma_offset + in.gamma[i];
      ref.y[row * cols + i] = h * gamma + (subtract_mean ? in.beta[i] : 0.0f);
      ref.dgamma[i] += dy[i] * h;
      ref.dbeta[i] += dy[i];
      average_g += subtract_mean ? dy[i] * gamma / n : 0;
      average_gh += dy[i] * gamma * h / n;
    }
    for (int64_t i = 0; i < cols; ++i) {
      const double h = (x[i] - mean) * rstd, g = dy[i] * (gamma_offset + in.gamma[i]);
      ref.dx[row * cols + i] = rstd * (g - average_g - h * average_gh);
    }
    ref.mean.push_back(mean);
    ref.rstd.push_back(rstd);
  }
  return ref;
}

struct Outputs {
  Floats y, mean, rstd;
};

Outputs run_layer_norm(const Inputs& in) {
  Unaligned x(in.x), gamma(in.gamma), beta(in.beta), y(zeros(in.rows * in.cols));
  Outputs out{{}, Floats(in.rows), Floats(in.rows)};
  layer_norm({.x = x.data(),
              .gamma = gamma.data(),
              .beta = beta.data(),
              .y = y.data(),
              .mean = out.mean.data(),
              .rstd = out.rstd.data(),
              .rows = in.rows,
              .cols = in.cols,
              .eps = kEps});
  out.y = y.values();
  return out;
}

Outputs run_rms_norm(const Inputs& in, float gamma_offset) {
  Unaligned x(in.x), gamma(in.gamma), y(zeros(in.rows * in.cols));
  Outputs out{{}, {}, Floats(in.rows)};
  rms_norm({.x = x.data(),
            .gamma = gamma.data(),
            .gamma_offset = gamma_offset,
            .y = y.data(),
            .rstd = out.rstd.data(),
            .rows = in.rows,
            .cols = in.cols,
            .eps = kEps});
  out.y = y.values();
  return out;
}

Floats added(const Floats& a, const Floats& b) {
  Floats sum = a;
  for (size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
  return sum;
}

Doubles to_doubles(const Floats& a) { return {a.begin(), a.end()}; }

// dx, dgamma and dbeta of a row of one element are differences of nearly equal numbers times an
// rstd that may be 1/sqrt(eps): the tolerance grows with it.
double gradient_tolerance(const Reference& ref) {
  double largest = 1;
  for (const double rstd : ref.rstd) largest = std::max(largest, rstd);
  return 2e-6 * largest;
}

TEST(LayerNorm, MatchesDoublePrecision) {
  for_each_target([] {
    for (const int64_t cols : kRowSizes) {
      const Inputs in = make_inputs(kRows, cols);
      const Reference ref = reference(in, true, 0);
      const Outputs out = run_layer_norm(in);
      expect_near(out.y, ref.y, 2e-6);
      expect_near(out.mean, ref.mean, 1e-6);
      expect_near(out.rstd, ref.rstd, 1e-6);
    }
  });
}

// average(x^2) - mean^2 would have no digit left here.
TEST(LayerNorm, SurvivesALargeMean) {
  for_each_target([] {
    const Inputs in = make_inputs(kRows, 1000, 1e4f);
    const Outputs out = run_layer_norm(in);
    const Reference ref = reference(in, true, 0);
    expect_near(out.y, ref.y, 1e-2);
    expect_near(out.rstd, ref.rstd, 1e-6);
  });
}

TEST(LayerNorm, WorksInPlaceAndWithoutItsOptions) {
  for_each_target([] {
    for (const int64_t cols : kRowSizes) {
      Inputs in = make_inputs(kRows, cols);
      in.beta.assign(in.beta.size(), 0.0f);
      const Floats expected = run_layer_norm(in).y;
      layer_norm({.x = in.x.data(),
                  .gamma = in.gamma.data(),
                  .y = in.x.data(),
                  .rows = kRows,
                  .cols = cols,
                  .eps = kEps});
      EXPECT_EQ(in.x, expected);
    }
  });
}

TEST(LayerNorm, ARowDoesNotDependOnOthers) {
  for_each_target([] {
    for (const int64_t cols : kRowSizes) {
      const Inputs in = make_inputs(kRows, cols);
      const Outputs all = run_layer_norm(in), rms = run_rms_norm(in, 1);
      for (int64_t row = 0; row < kRows; ++row) {
        Inputs one = in;
        one.rows = 1;
        one.x.assign(in.x.begin() + row * cols, in.x.begin() + (row + 1) * cols);
        const auto same = [&](const Floats& y, const Floats& ys) {
          return y == Floats(ys.begin() + row * cols, ys.begin() + (row + 1) * cols);
        };
        EXPECT_TRUE(same(run_layer_norm(one).y, all.y)) << "row " << row << " of " << cols;
        EXPECT_TRUE(same(run_rms_norm(one, 1).y, rms.y)) << "row " << row << " of " << cols;
      }
    }
  });
}

TEST(LayerNorm, GradientMatchesItsFormula) {
  for_each_target([] {
    for (const int64_t cols : kRowSizes) {
      const Inputs in = make_inputs(kRows, cols);
      const Reference ref = reference(in, true, 0);
      const Outputs out = run_layer_norm(in);
      const double tolerance = gradient_tolerance(ref);
      Unaligned x(in.x), gamma(in.gamma), dy(in.dy), dx(zeros(kRows * cols)), dgamma(zeros(cols)),
          dbeta(zeros(cols));
      LayerNormBackward args{.x = x.data(),
                             .gamma = gamma.data(),
                             .mean = out.mean.data(),
                             .rstd = out.rstd.data(),
                             .dy = dy.data(),
                             .dx = dx.data(),
                             .dgamma = dgamma.data(),
                             .dbeta = dbeta.data(),
                             .rows = kRows,
                             .cols = cols};
      layer_norm_backward(args);
      expect_near(dx.values(), ref.dx, tolerance);
      expect_near(dgamma.values(), ref.dgamma, tolerance);
      expect_near(dbeta.values(), ref.dbeta, tolerance);

      const Floats before = random_row(kRows * cols, 1, 5);
      Unaligned sum(before);
      args.dx = sum.data(), args.accumulate = true;
      layer_norm_backward(args);
      expect_near(sum.values(), to_doubles(added(before, dx.values())), tolerance);
      Doubles twice = ref.dgamma;
      for (double& value : twice) value *= 2;
      expect_near(dgamma.values(), twice, 2 * tolerance);

      args.dx = dy.data(), args.accumulate = false, args.dgamma = args.dbeta = nullptr;
      layer_norm_backward(args);
      EXPECT_EQ(dy.values(), dx.values()) << "in place";
    }
  });
}

// Holds the formulas themselves: d(sum(dy * y)) / dx by central differences of the reference.
TEST(LayerNorm, FormulaMatchesDifferences) {
  for (const bool subtract_mean : {true, false}) {
    Inputs in = make_inputs(2, 7);
    const Reference ref = reference(in, subtract_mean, 1);
    const float h = 0x1p-10f;
    const auto objective = [&] {
      const Reference now = reference(in, subtract_mean, 1);
      double sum = 0;
      for (size_t i = 0; i < now.y.size(); ++i) sum += now.y[i] * in.dy[i];
      return sum;
    };
    const auto check = [&](Floats& values, const Doubles& gradient) {
      for (size_t i = 0; i < values.size(); ++i) {
        const float value = values[i];
        values[i] = value + h;
        const double above = objective(), above_at = values[i];
        values[i] = value - h;
        const double below = objective(), below_at = values[i];
        values[i] = value;
        EXPECT_NEAR((above - below) / (above_at - below_at), gradient[i], 1e-5);
      }
    };
    check(in.x, ref.dx);
    check(in.gamma, ref.dgamma);
    if (subtract_mean) check(in.beta, ref.dbeta);
  }
}

TEST(RmsNorm, MatchesDoublePrecision) {
  for_each_target([] {
    for (const int64_t cols : kRowSizes) {
      for (const float offset : {0.0f, 1.0f}) {
        Inputs in = make_inputs(kRows, cols);
        const Reference ref = reference(in, false, offset);
        const Outputs out = run_rms_norm(in, offset);
        expect_near(out.y, ref.y, 1e-6);
        expect_near(out.rstd, ref.rstd, 1e-6);
        rms_norm({.x = in.x.data(),
                  .gamma = in.gamma.data(),
                  .gamma_offset = offset,
                  .y = in.x.data(),
                  .rows = kRows,
                  .cols = cols,
                  .eps = kEps});
        EXPECT_EQ(in.x, out.y) << "in place";
      }
    }
  });
}

TEST(RmsNorm, GradientMatchesItsFormula) {
  for_each_target([] {
    for (const int64_t cols : kRowSizes) {
      for (const float offset : {0.0f, 1.0f}) {
        const Inputs in = make_inputs(kRows, cols);
        const Reference ref = reference(in, false, offset);
        const Outputs out = run_rms_norm(in, offset);
        const double tolerance = gradient_tolerance(ref);
        Unaligned x(in.x), gamma(in.gamma), dy(in.dy), dx(zeros(kRows * cols)), dgamma(zeros(cols));
        RmsNormBackward args{.x = x.data(),
                             .gamma = gamma.data(),
                             .gamma_offset = offset,
                             .rstd = out.rstd.data(),
                             .dy = dy.data(),
                             .dx = dx.data(),
                             .dgamma = dgamma.data(),
                             .rows = kRows,
                             .cols = cols};
        rms_norm_backward(args);
        expect_near(dx.values(), ref.dx, tolerance);
        expect_near(dgamma.values(), ref.dgamma, tolerance);

        const Floats before = random_row(kRows * cols, 1, 5);
        Unaligned sum(before);
        args.dx = sum.data(), args.accumulate = true;
        rms_norm_backward(args);
        expect_near(sum.values(), to_doubles(added(before, dx.values())), tolerance);
        Doubles twice = ref.dgamma;
        for (double& value : twice) value *= 2;
        expect_near(dgamma.values(), twice, 2 * tolerance);

        args.dx = dy.data(), args.accumulate = false, args.dgamma = nullptr;
        rms_norm_backward(args);
        EXPECT_EQ(dy.values(), dx.values()) << "in place";
      }
    }
  });
}

}  // namespace
}  // namespace heed::kernels
