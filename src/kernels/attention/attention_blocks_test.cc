// Keys in a cache's blocks give the bits of the same keys in rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "kernels/attention/attention.h"
#include "kernels/simd/each_target_testing.h"

namespace heed::kernels {
namespace {

constexpr int kHeads = 6, kHeadDim = 20;
constexpr int64_t kWidth = kHeads * kHeadDim;
constexpr int64_t kLongest = 300;

struct Option {
  const char* name;
  int kv_heads;
  std::function<void(Attention&)> set;
};

std::vector<float> random_floats(int64_t n, uint32_t site) {
  Random random({.seed = 12, .site = site});
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = random.normal();
  return x;
}

// Some sequences, their keys both in rows and in blocks. Everything in the blocks that is not a key
// of a sequence is NaN, and blocks are handed out in a random order.
class Cache {
 public:
  Cache(int kv_heads, const std::vector<int64_t>& lengths) : kv_heads_(kv_heads) {
    const int64_t width = kv_heads * kHeadDim;
    int64_t rows = 0, blocks = 0;
    for (const int64_t length : lengths) {
      rows += length;
      offsets_.push_back(static_cast<int32_t>(rows));
      blocks += (length + kKvBlock - 1) / kKvBlock;
    }
    q_ = random_floats(rows * kWidth, 1);
    k_ = random_floats(rows * width, 2), v_ = random_floats(rows * width, 3);
    std::vector<int32_t> free(static_cast<size_t>(blocks));
    for (size_t i = 0; i < free.size(); ++i) free[i] = static_cast<int32_t>(i);
    Random random({.seed = 5});
    for (size_t i = free.size(); i > 1; --i) std::swap(free[i - 1], free[random.below(i)]);
    const int64_t floats = kv_block_floats(kv_heads, kHeadDim);
    data_.assign(static_cast<size_t>(blocks * floats), std::numeric_limits<float>::quiet_NaN());
    ids_.reserve(lengths.size());
    for (const int64_t length : lengths) {
      std::vector<int32_t>& ids = ids_.emplace_back();
      for (int64_t at = 0; at < length; at += kKvBlock) ids.push_back(free.back()), free.pop_back();
      tables_.push_back({ids.data(), 0, length});
    }
    ThreadPool pool(1);
    write_kv(pool, blocks_of(tables_),
             {.offsets = offsets_.data(),
              .k = k_.data(),
              .v = v_.data(),
              .k_stride = width,
              .v_stride = width});
  }

  size_t sequences() const { return tables_.size(); }
  int64_t length(size_t s) const { return tables_[s].keys; }
  const KvTable& table(size_t s) const { return tables_[s]; }
  const float* queries(size_t s) const { return q_.data() + offsets_[s] * kWidth; }
  // All that a released block may hold.
  void forget(size_t s, int64_t blocks) {
    const int64_t floats = kv_block_floats(kv_heads_, kHeadDim);
    for (int64_t i = 0; i < blocks; ++i) {
      std::fill_n(data_.begin() + ids_[s][static_cast<size_t>(i)] * floats, floats,
                  std::numeric_limits<float>::quiet_NaN());
    }
    tables_[s].blocks += blocks, tables_[s].first_block += blocks;
  }

  // Of all sequences, all queries, from rows.
  std::vector<float> from_rows(const Option& option) const {
    Attention a = describe(option, offsets_);
    a.key_offsets = offsets_.data();
    a.q = q_.data(), a.k = k_.data(), a.v = v_.data();
    a.k_stride = a.v_stride = kv_heads_ * kHeadDim;
    return run(a, 1);
  }

  // Some queries against tables: queries[i] are rows of the sequence whose table is tables[i], the
  // last of its positions.
  struct Queries {
    const float* rows;
    int64_t count;
    KvTable table;
  };
  std::vector<float> from_blocks(const Option& option, const std::vector<Queries>& queries,
                                 int threads) const {
    std::vector<int32_t> offsets{0};
    std::vector<KvTable> tables;
    std::vector<float> q;
    for (const Queries& some : queries) {
      q.insert(q.end(), some.rows, some.rows + some.count * kWidth);
      offsets.push_back(offsets.back() + static_cast<int32_t>(some.count));
      tables.push_back(some.table);
    }
    Attention a = describe(option, offsets);
    const KvBlocks blocks = blocks_of(tables);
    a.q = q.data(), a.blocks = &blocks;
    return run(a, threads);
  }

 private:
  KvBlocks blocks_of(const std::vector<KvTable>& tables) const {
    return {kv_heads_,
            kHeadDim,
            const_cast<float*>(data_.data()),
            kv_block_floats(kv_heads_, kHeadDim),
            tables.data(),
            static_cast<int64_t>(tables.size())};
  }
  Attention describe(const Option& option, const std::vector<int32_t>& offsets) const {
    Attention a;
    a.heads = kHeads, a.kv_heads = kv_heads_, a.head_dim = kHeadDim;
    a.sequences = static_cast<int64_t>(offsets.size()) - 1;
    a.query_offsets = offsets.data();
    a.q_stride = kWidth, a.scale = 0.3f;
    option.set(a);
    return a;
  }
  static std::vector<float> run(const Attention& a, int threads) {
    ThreadPool pool(threads);
    std::vector<float> out(static_cast<size_t>(a.query_offsets[a.sequences] * kWidth));
    // What was there before is not looked at.
    std::vector<float> scratch(static_cast<size_t>(threads * attention_scratch_floats(a, false)),
                               std::numeric_limits<float>::quiet_NaN());
    attention_forward(pool, a, {.out = out.data(), .out_stride = kWidth}, scratch.data());
    return out;
  }

  int kv_heads_;
  std::vector<int32_t> offsets_{0};
  std::vector<float> q_, k_, v_, data_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<KvTable> tables_;
};

bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

class AttentionBlocksTest : public testing::TestWithParam<Option> {};

// However many queries come at once, each with the keys that exist by then.
TEST_P(AttentionBlocksTest, DecodeStepsHaveTheBitsOfPrefill) {
  for_each_target([&] {
    const Cache cache(GetParam().kv_heads, {kLongest});
    const auto expected = cache.from_rows(GetParam());
    for (const int64_t step : {1, 7, 130, 300}) {
      for (int64_t at = 0; at < kLongest; at += step) {
        const int64_t count = std::min(step, kLongest - at);
        KvTable table = cache.table(0);
        table.keys = at + count;
        const auto out =
            cache.from_blocks(GetParam(), {{cache.queries(0) + at * kWidth, count, table}}, 1);
        ASSERT_TRUE(same_bits(out.data(), expected.data() + at * kWidth, count * kWidth))
            << "steps of " << step << " at " << at;
      }
    }
  });
}

TEST_P(AttentionBlocksTest, IsBatchInvariantOnAnyNumberOfThreads) {
  const Cache cache(GetParam().kv_heads, {1, 130, 47, 5, 200});
  const auto expected = cache.from_rows(GetParam());
  std::vector<Cache::Queries> all;
  for (size_t s = 0; s < cache.sequences(); ++s) {
    all.push_back({cache.queries(s), cache.length(s), cache.table(s)});
  }
  for (const int threads : {1, 2, 3}) {
    const auto out = cache.from_blocks(GetParam(), all, threads);
    ASSERT_TRUE(same_bits(out.data(), expected.data(), static_cast<int64_t>(out.size())));
  }
}

TEST_P(AttentionBlocksTest, ThreadsShareOneSequence) {
  const Cache cache(GetParam().kv_heads, {kLongest});
  const auto expected = cache.from_rows(GetParam());
  for (const int threads : {1, 2, 3, 16}) {
    const auto out =
        cache.from_blocks(GetParam(), {{cache.queries(0), kLongest, cache.table(0)}}, threads);
    ASSERT_TRUE(same_bits(out.data(), expected.data(), static_cast<int64_t>(out.size())));
  }
}

// Parts of a prompt that begin anywhere, and end in the middle of what threads share.
TEST_P(AttentionBlocksTest, ThreadsSharePartsOfASequence) {
  const Cache cache(GetParam().kv_heads, {kLongest});
  const auto expected = cache.from_rows(GetParam());
  for (const int threads : {2, 3, 16}) {
    for (const int64_t at : {5, 21, 64}) {
      const auto out = cache.from_blocks(
          GetParam(), {{cache.queries(0) + at * kWidth, kLongest - at, cache.table(0)}}, threads);
      ASSERT_TRUE(
          same_bits(out.data(), expected.data() + at * kWidth, static_cast<int64_t>(out.size())))
          << threads << " threads from " << at;
    }
  }
}

TEST_P(AttentionBlocksTest, SequencesMayShareBlocks) {
  const Cache cache(GetParam().kv_heads, {70});
  const auto last = [&](int64_t keys) {
    KvTable table = cache.table(0);
    table.keys = keys;
    return Cache::Queries{cache.queries(0) + (keys - 1) * kWidth, 1, table};
  };
  const auto expected = cache.from_rows(GetParam());
  const auto out = cache.from_blocks(GetParam(), {last(70), last(70), last(33)}, 2);
  EXPECT_TRUE(same_bits(out.data(), expected.data() + 69 * kWidth, kWidth));
  EXPECT_TRUE(same_bits(out.data() + kWidth, expected.data() + 69 * kWidth, kWidth));
  EXPECT_TRUE(same_bits(out.data() + 2 * kWidth, expected.data() + 32 * kWidth, kWidth));
}

const std::vector<float>& slopes_table() {
  // 600 distances to either side, for each head.
  static const std::vector<float> table = [] {
    std::vector<float> t(static_cast<size_t>(kHeads * 1200));
    for (size_t i = 0; i < t.size(); ++i) {
      t[i] = -0.01f * std::abs(static_cast<float>(i % 1200) - 600);
    }
    return t;
  }();
  return table;
}

INSTANTIATE_TEST_SUITE_P(
    Causal, AttentionBlocksTest,
    testing::Values(Option{"plain", kHeads, [](Attention& a) { a.after = 0; }},
                    Option{"grouped", 2, [](Attention& a) { a.after = 0; }},
                    Option{"one_kv_head", 1, [](Attention& a) { a.after = 0; }},
                    Option{"window", kHeads, [](Attention& a) { a.after = 0, a.before = 31; }},
                    Option{"grouped_window", 3, [](Attention& a) { a.after = 0, a.before = 140; }},
                    Option{"capped", 2, [](Attention& a) { a.after = 0, a.soft_cap = 2; }},
                    Option{"biased", 2,
                           [](Attention& a) {
                             a.after = 0;
                             a.bias = slopes_table().data();
                             a.bias_stride = 1200, a.bias_center = 600;
                           }}),
    [](const auto& suite) { return suite.param.name; });

void expect_blocks_within(int64_t window, int64_t step) {
  const Option option{"", 2, [&](Attention& a) { a.after = 0, a.before = window - 1; }};
  Cache cache(2, {kLongest});
  const auto expected = cache.from_rows(option);
  for (int64_t at = 0; at < kLongest; at += step) {
    const int64_t count = std::min(step, kLongest - at);
    const int64_t first = std::max<int64_t>(at - window + 1, 0) / kKvBlock;
    cache.forget(0, first - cache.table(0).first_block);
    KvTable table = cache.table(0);
    table.keys = at + count;
    const auto out = cache.from_blocks(option, {{cache.queries(0) + at * kWidth, count, table}}, 1);
    ASSERT_TRUE(same_bits(out.data(), expected.data() + at * kWidth, count * kWidth))
        << "window " << window << " at " << at;
  }
}

TEST(AttentionBlocks, AWindowReadsNoEarlierBlocks) {
  for (const int64_t window : {1, 16, 17, 31, 100, 140}) {
    for (const int64_t step : {9, 40, 130}) expect_blocks_within(window, step);
  }
}

// Cross-attention: every beam sees all of its source.
TEST(AttentionBlocks, WithoutAMaskEveryQuerySeesAllKeys) {
  const Option option{"", 2, [](Attention&) {}};
  const Cache cache(2, {45});
  const auto expected = cache.from_rows(option);
  for (const int64_t row : {0, 20, 44}) {
    const auto out = cache.from_blocks(option,
                                       {{cache.queries(0), 1, cache.table(0)},
                                        {cache.queries(0) + row * kWidth, 1, cache.table(0)}},
                                       1);
    EXPECT_TRUE(same_bits(out.data(), expected.data(), kWidth));
    EXPECT_TRUE(same_bits(out.data() + kWidth, expected.data() + row * kWidth, kWidth));
  }
}

}  // namespace
}  // namespace heed::kernels
