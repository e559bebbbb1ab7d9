// The kernel's own promises. Its mathematics, with every option, is tested by ops/table/op_table_test.cc.
#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <tuple>
#include <vector>

#include "base/philox.h"
#include "kernels/attention/attention_tiles.h"

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
  std::vector<int32_t> query_offsets{0}, key_offsets{0};
  std::vector<float> q, k, v;

  void add(const float* q_rows, int64_t queries, const float* k_rows, const float* v_rows,
           int64_t keys) {
    q.insert(q.end(), q_rows, q_rows + queries * kWidth);
    k.insert(k.end(), k_rows, k_rows + keys * kKvWidth);
    v.insert(v.end(), v_rows, v_rows + keys * kKvWidth);
    query_offsets.push_back(query_offsets.back() + static_cast<int32_t>(queries));
    key_offsets.push_back(key_offsets.back() + static_cast<int32_t>(keys));
  }

  std::vector<float> forward(int threads, const std::function<void(Attention&)>& set) const {
    ThreadPool pool(threads);
    Attention a;
    a.heads = kHeads, a.kv_heads = kKvHeads, a.head_dim = kHeadDim;
    a.sequences = static_cast<int64_t>(query_offsets.size()) - 1;
    a.query_offsets = query_offsets.data(), a.key_offsets = key_offsets.data();
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

TEST_P(AttentionTest, IsBatchInvariantOnAnyNumberOfThreads) {
  const auto q = random_floats(400 * kWidth, 4), k = random_floats(400 * kKvWidth, 5),
             v = random_floats(400 * kKvWidth, 6);
  Sequences all;
  std::vector<std::vector<float>> alone;
  int64_t row = 0;
  for (const int64_t length : {1, 130, 47, 5, 200}) {
    Sequences one;
    for (Sequences* s : {&one, &all}) {
      s->add(q.data() + row * kWidth, length, k.data() + row * kKvWidth, v.data() + row * kKvWidth,
             length);
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

// Scores that rise, fall or leap from a tile of keys to the next move what exponents refer to.
TEST(Attention, HandlesScoresFarFromTheFirstTile) {
  constexpr int64_t kKeys = 700;
  const auto q = random_floats(kWidth, 1), v = random_floats(kKeys * kKvWidth, 3);
  for (const float step : {0.02f, -0.02f, 0.3f, -0.3f, 20.0f}) {
    std::vector<float> k(static_cast<size_t>(kKeys * kKvWidth));
    for (int64_t i = 0; i < kKeys * kKvWidth; ++i) {
      const int64_t head = i % kKvWidth / kHeadDim;  // its first query head meets it
      k[static_cast<size_t>(i)] = step * static_cast<float>(i / kKvWidth) / kHeadDim /
                                  q[static_cast<size_t>(2 * head * kHeadDim + i % kHeadDim)];
    }
    Sequences s;
    s.add(q.data(), 1, k.data(), v.data(), kKeys);
    const auto out = s.forward(1, [](Attention& a) { a.scale = 1; });
    for (int64_t head = 0; head < kHeads; ++head) {
      const float* query = q.data() + head * kHeadDim;
      const int64_t column = head / (kHeads / kKvHeads) * kHeadDim;
      std::vector<double> scores, sums(kHeadDim);
      for (int64_t j = 0; j < kKeys; ++j) {
        const float* key = k.data() + j * kKvWidth + column;
        scores.push_back(std::inner_product(query, query + kHeadDim, key, 0.0));
      }
      const double top = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (size_t j = 0; j < scores.size(); ++j) {
        const double e = std::exp(scores[j] - top);
        total += e;
        for (size_t i = 0; i < kHeadDim; ++i) {
          sums[i] += e * v[j * kKvWidth + static_cast<size_t>(column) + i];
        }
      }
      if (head % 2 != 0 && std::abs(step) > 1) continue;  // scores beyond what floats tell apart
      for (size_t i = 0; i < kHeadDim; ++i) {
        EXPECT_NEAR(out[static_cast<size_t>(head * kHeadDim) + i], sums[i] / total, 1e-4)
            << "step " << step << ", head " << head;
      }
    }
  }
}

// Of scores that floats hardly hold, the largest still takes all.
TEST(Attention, HandlesHugeScores) {
  constexpr int64_t kKeys = 40;
  const auto v = random_floats(kKeys * kKvWidth, 3);
  const std::vector<float> q(kWidth, 1.0f);
  for (const float size : {1e5f, 3e9f, 7e12f, 1e30f}) {
    for (const int64_t largest : {0, 17, 39}) {
      std::vector<float> k(static_cast<size_t>(kKeys * kKvWidth));
      for (int64_t i = 0; i < kKeys * kKvWidth; ++i) {
        const bool is_it = i / kKvWidth == largest;
        k[static_cast<size_t>(i)] = (is_it ? size : -size * static_cast<float>(i % 7)) / kHeadDim;
      }
      Sequences s;
      s.add(q.data(), 1, k.data(), v.data(), kKeys);
      const auto out = s.forward(1, [](Attention&) {});
      for (int64_t i = 0; i < kWidth; ++i) {
        const int64_t column = i / kHeadDim / (kHeads / kKvHeads) * kHeadDim + i % kHeadDim;
        EXPECT_FLOAT_EQ(out[static_cast<size_t>(i)],
                        v[static_cast<size_t>(largest * kKvWidth + column)])
            << size << ", " << largest;
      }
    }
  }
}

TEST(Attention, AQueryThatSeesNoKeyGetsZeros) {
  const auto q = random_floats(2 * kWidth, 1), k = random_floats(kKvWidth, 2);
  Sequences s;
  s.add(q.data(), 2, k.data(), k.data(), 1);
  const auto out = s.forward(1, [](Attention& a) { a.before = 0, a.after = 0; });
  for (int64_t i = 0; i < kWidth; ++i) {
    EXPECT_NE(out[static_cast<size_t>(i)], 0);
    EXPECT_EQ(out[static_cast<size_t>(kWidth + i)], 0);
  }
}

// All heads share one key/value head: nothing but its queries can be dealt out.
TEST_P(AttentionTest, OneSequenceOfOneHeadHasTheSameBitsOnAnyNumberOfThreads) {
  constexpr int64_t kLength = 333;
  const auto q = random_floats(kLength * kWidth, 7), k = random_floats(kLength * kKvWidth, 8),
             v = random_floats(kLength * kKvWidth, 9);
  Sequences one;
  one.add(q.data(), kLength, k.data(), v.data(), kLength);
  const auto set = [](Attention& a) { GetParam().set(a), a.kv_heads = 1; };
  const auto expected = one.forward(1, set);
  for (const int threads : {2, 3, 7}) {
    EXPECT_TRUE(same_bits(one.forward(threads, set).data(), expected.data(), kLength * kWidth));
  }
}

struct Dealt {
  int64_t sequence;
  int head;
  QueryRange range;
  int64_t share;
};

std::vector<Dealt> dealt(const Attention& a, int threads) {
  ThreadPool pool(threads);
  std::mutex mutex;
  std::vector<Dealt> all;
  for_each_query_range(pool, a,
                       [&](int64_t sequence, int head, const QueryRange& range, int64_t share) {
                         const std::lock_guard lock(mutex);
                         all.push_back({sequence, head, range, share});
                       });
  std::ranges::sort(all, {},
                    [](const Dealt& d) { return std::tuple(d.sequence, d.head, d.range.begin); });
  return all;
}

TEST(Attention, ALongSequenceIsSplitAmongThreads) {
  const int32_t offsets[] = {0, 1024};
  Attention a;
  a.head_dim = 64, a.sequences = 1, a.query_offsets = a.key_offsets = offsets;
  for (const bool causal : {false, true}) {
    a.after = causal ? 0 : kUnlimited;
    const std::vector<Dealt> parts = dealt(a, 3);
    ASSERT_EQ(parts.size(), 3u);
    int64_t at = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].share, static_cast<int64_t>(i));
      EXPECT_EQ(parts[i].range.begin, at);
      at = parts[i].range.end;
      // Of pairs of query and key, no share has much more than a third.
      const auto begin = static_cast<double>(parts[i].range.begin), end = static_cast<double>(at);
      const double pairs = causal ? (end * end - begin * begin) / 2 : (end - begin) * 1024;
      EXPECT_LT(pairs, (causal ? 0.5 : 1) * 1024 * 1024 * 0.4) << i;
    }
    EXPECT_EQ(at, 1024);
  }
}

TEST(Attention, EveryQueryIsComputedOnce) {
  const int32_t offsets[] = {0, 0, 1, 500, 548, 549, 700};
  Attention a;
  a.heads = a.kv_heads = 3, a.head_dim = 8, a.sequences = 6;
  a.query_offsets = a.key_offsets = offsets;
  for (const int64_t before : {kUnlimited, int64_t{20}}) {
    a.before = before, a.after = 0;
    for (const int threads : {1, 2, 5, 16}) {
      std::vector<int64_t> next(18, 0);
      for (const Dealt& d : dealt(a, threads)) {
        int64_t& at = next[static_cast<size_t>(3 * d.sequence + d.head)];
        EXPECT_EQ(d.range.begin, at);
        EXPECT_GT(d.range.end, at);
        EXPECT_LT(d.share, threads);
        at = d.range.end;
      }
      for (int64_t i = 0; i < 18; ++i) {
        EXPECT_EQ(next[static_cast<size_t>(i)], a.queries(i / 3)) << threads << " threads";
      }
    }
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
