// linear_add(): its promise of bits. linear() itself is in the table (op_table_test.cc).
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/philox.h"
#include "ops/ops.h"

namespace heed {
namespace {

using kernels::PackedWeight;
using kernels::WeightType;

std::vector<float> random_floats(int64_t n, uint32_t site) {
  Random random({.seed = 21, .site = site});
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = random.normal();
  return x;
}

struct Case {
  int64_t rows, in, out;
  int threads;
};

// Both ways, and what they need of the arena.
void expect_same_bits(const Case& c, const Linear& layer) {
  SCOPED_TRACE(std::to_string(c.rows) + " rows, " + std::to_string(c.threads) + " threads");
  std::vector<float> x = random_floats(c.rows * c.in, 1), skip = random_floats(c.rows * c.out, 2);
  const std::vector<float> skip_before = skip;
  ThreadPool pool(c.threads);
  const auto run = [&](const auto& op) {
    Arena plan = Arena::measuring();
    Ctx planning{pool, plan};
    op(planning);
    Arena arena(plan.peak_bytes());
    Ctx ctx{pool, arena};
    const Var y = op(ctx);
    return std::vector<float>(y.value.data, y.value.data + y.value.size());
  };
  const Var in{Mat(x.data(), c.rows, c.in)}, residual{Mat(skip.data(), c.rows, c.out)};
  const auto expected =
      run([&](Ctx& ctx) { return residual_add(ctx, residual, linear(ctx, in, layer), 0.1f); });
  const auto found = run([&](Ctx& ctx) { return linear_add(ctx, residual, in, layer, 0.1f); });
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0);
  EXPECT_EQ(skip, skip_before);
}

TEST(LinearAdd, IsTheResidualAddOfTheLinearLayer) {
  constexpr int64_t kIn = 70, kOut = 117;
  const std::vector<float> values = random_floats(kOut * kIn, 3), bias = random_floats(kOut, 4);
  for (const bool with_bias : {false, true}) {
    Linear layer{.weight = {ConstMat(values.data(), kOut, kIn)}};
    if (with_bias) layer.bias = {ConstMat(bias.data(), 1, kOut)};
    for (const Case& c : {Case{1, kIn, kOut, 1}, {3, kIn, kOut, 2}, {40, kIn, kOut, 3}}) {
      expect_same_bits(c, layer);  // plain floats: two passes
      for (const kernels::WeightTypeInfo& info : kernels::weight_types()) {
        const WeightType type = info.type;
        const auto bytes = static_cast<size_t>(kernels::packed_bytes(type, kOut, kIn));
        Arena memory(bytes);
        PackedWeight packed{type, kOut, kIn, memory.allocate<std::byte>(bytes)};
        std::vector<std::byte> numbers(
            static_cast<size_t>(kOut * kernels::quantized_row_bytes(type, kIn)));
        std::vector<float> scales(
            static_cast<size_t>(kOut * kernels::quantized_row_scales(type, kIn)));
        kernels::quantize_rows(type, {values.data(), kOut, kIn}, numbers.data(), scales.data());
        kernels::pack_rows(packed, 0, kOut, numbers.data(), scales.data());
        Linear narrow = layer;
        narrow.weight = {ConstMat(nullptr, kOut, kIn), nullptr, packed};
        expect_same_bits(c, narrow);
      }
    }
  }
}

}  // namespace
}  // namespace heed
