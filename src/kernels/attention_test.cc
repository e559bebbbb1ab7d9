// The kernel's own promises. Its mathematics, with every option, is tested by ops/op_table_test.cc.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "base/philox.h"

namespace heed::kernels {
namespace {

constexpr int kHeads = 4, kKvHeads = 2, kHeadDim = 20;
constexpr int64_t kWidth = kHeads * kHeadDim, kKvWidth = kKvHeads * kHeadDim;

std::vector<float> random_floats(int64_t n, uint32_t site) {
  Random random({.seed = 11, .site = site});
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = random.normal();
  return x;
}

// One or more sequences and the forward of them.
struct Sequences {
  std::vector<int32_t> query_offsets{0}, key_offsets{0}, first_positions;
  std::vector<float> q, k, v;

  void add(const float* q_rows, int64_t queries, const float* k_rows, const float* v_rows,
           int64_t keys, int64_t first_position) {
    q.insert(q.end(), q_rows, q_rows + queries * kWidth);
    k.insert(k.end(), k_rows, k_rows + keys * kKvWidth);
    v.insert(v.end(), v_rows, v_rows + keys * kKvWidth);
    query_offsets.push_back(query_offsets.back() + static_cast<int32_t>(queries));
    key_offsets.push_back(key_offsets.back() + static_cast<int32_t>(keys));
    first_positions.push_back(static_cast<int32_t>(first_position));
  }

  std::vector<float> forward(int threads, const std::function<void(Attention&)>& set) const {
    ThreadPool pool(threads);
    Attention a;
    a.heads = kHeads, a.kv_heads = kKvHeads, a.head_dim = kHeadDim;
    a.sequences = static_cast<int64_t>(first_positions.size());
    a.query_offsets = query_offsets.data(), a.key_offsets = key_offsets.data();
    a.first_positions = first_positions.data();
    a.q = q.data(), a.k = k.data(), a.v = v.data();
    a.q_stride = kWidth, a.k_stride = a.v_stride = kKvWidth;
    a.scale = 0.3f;
    set(a);
    std::vector<float> out(q.size());
    std::vector<float> scratch(static_cast<size_t>(threads * attention_scratch_floats(a, false)));
    attention_forward(pool, a, {.out = out.data(), .out_stride = kWidth}, scratch.data());
    return out;
  }
};

bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

struct Option {
  const char* name;
  std::function<void(Attention&)> set;
};

class AttentionTest : public testing::TestWithParam<Option> {};

TEST_P(AttentionTest, StepByStepEqualsAllAtOnceBitForBit) {
  constexpr int64_t kLength = 300;
  const auto q = random_floats(kLength * kWidth, 1), k = random_floats(kLength * kKvWidth, 2),
             v = random_floats(kLength * kKvWidth, 3);
  Sequences whole;
  whole.add(q.data(), kLength, k.data(), v.data(), kLength, 0);
  const auto expected = whole.forward(1, GetParam().set);
  for (const int64_t step : {int64_t{1}, int64_t{7}, int64_t{130}}) {
    for (int64_t at = 0; at < kLength; at += step) {
      const int64_t rows = std::min(step, kLength - at);
      Sequences part;  // the keys that exist by then, and `rows` new queries
      part.add(q.data() + at * kWidth, rows, k.data(), v.data(), at + rows, at);
      ASSERT_TRUE(same_bits(part.forward(1, GetParam().set).data(), expected.data() + at * kWidth,
                            rows * kWidth))
          << "steps of " << step << " at " << at;
    }
  }
}

TEST_P(AttentionTest, ASequenceDoesNotSeeItsNeighboursOrTheThreads) {
  const auto q = random_floats(400 * kWidth, 4), k = random_floats(400 * kKvWidth, 5),
             v = random_floats(400 * kKvWidth, 6);
  Sequences all;
  std::vector<std::vector<float>> alone;
  int64_t row = 0;
  for (const int64_t length : {1, 130, 47, 5, 200}) {
    Sequences one;
    for (Sequences* s : {&one, &all}) {
      s->add(q.data() + row * kWidth, length, k.data() + row * kKvWidth, v.data() + row * kKvWidth,
             length, 0);
    }
    alone.push_back(one.forward(1, GetParam().set));
    row += length;
  }
  for (const int threads : {1, 2, 3}) {
    const auto together = all.forward(threads, GetParam().set);
    int64_t at = 0;
    for (const auto& out : alone) {
      ASSERT_TRUE(same_bits(together.data() + at, out.data(), static_cast<int64_t>(out.size())));
      at += static_cast<int64_t>(out.size());
    }
  }
}

const std::vector<float>& slopes_table() {
  // 600 distances to either side, for each head.
  static const std::vector<float> table = [] {
    std::vector<float> t(static_cast<size_t>(kHeads * 1200));
    for (size_t i = 0; i < t.size(); ++i)
      t[i] = -0.01f * std::abs(static_cast<float>(i % 1200) - 600);
    return t;
  }();
  return table;
}

INSTANTIATE_TEST_SUITE_P(
    Causal, AttentionTest,
    testing::Values(Option{"plain", [](Attention& a) { a.after = 0; }},
                    Option{"window", [](Attention& a) { a.after = 0, a.before = 31; }},
                    Option{"capped", [](Attention& a) { a.after = 0, a.soft_cap = 2; }},
                    Option{"biased",
                           [](Attention& a) {
                             a.after = 0;
                             a.bias = slopes_table().data();
                             a.bias_stride = 1200, a.bias_center = 600;
                           }}),
    [](const auto& suite) { return suite.param.name; });

TEST(Attention, AQueryThatSeesNoKeyGetsZeros) {
  const auto q = random_floats(2 * kWidth, 1), k = random_floats(kKvWidth, 2);
  Sequences s;
  s.add(q.data(), 2, k.data(), k.data(), 1, 0);
  const auto out = s.forward(1, [](Attention& a) { a.before = 0, a.after = 0; });
  for (int64_t i = 0; i < kWidth; ++i) {
    EXPECT_NE(out[static_cast<size_t>(i)], 0);
    EXPECT_EQ(out[static_cast<size_t>(kWidth + i)], 0);
  }
}

TEST(Attention, ScratchGrowsWithTheLengthAndNotItsSquare) {
  const auto floats = [](int32_t length) {
    const int32_t offsets[] = {0, length};
    Attention a;
    a.head_dim = 64, a.sequences = 1, a.query_offsets = a.key_offsets = offsets;
    return attention_scratch_floats(a, true);
  };
  EXPECT_LT(floats(20000) - floats(10000), 2 * 64 * 10000 + 2 * 64 * 128 + 1);
}

}  // namespace
}  // namespace heed::kernels
