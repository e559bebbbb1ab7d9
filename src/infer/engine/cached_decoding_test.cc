// Decoding with a KV cache gives the bits of a full recomputation: for every family, position
// scheme, number of K/V heads and pattern of windows, however the rows are split into batches.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "base/philox.h"
#include "infer/engine/decode_batch.h"
#include "model/network.h"
#include "model/packed_batch.h"
#include "model/quantize.h"

namespace heed {
namespace {

using Tokens = std::vector<int32_t>;
using Rows = std::vector<std::vector<float>>;  // of logits

constexpr int64_t kVocabulary = 50;

Tokens random_tokens(int64_t n, uint64_t seed) {
  Random random({.seed = seed});
  Tokens tokens(static_cast<size_t>(n));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(kVocabulary));
  return tokens;
}

ModelConfig tiny(Family family) {
  ModelConfig c;
  c.family = family;
  c.vocabulary = kVocabulary;
  c.width = 32, c.heads = 4, c.ffn = 48;
  c.encoder_layers = 1, c.decoder_layers = 3;
  c.max_positions = 200;
  return c;
}

// A model, a cache for it, and both ways to get at logits.
class Decoder {
 public:
  // Plain floats, or packed weights of a type.
  explicit Decoder(const ModelConfig& config, int threads = 1,
                   std::optional<WeightType> packed = std::nullopt)
      : model_(network(config, packed)),
        pool_(threads),
        arena_(64 << 20),
        cache(transformer().kv_layout(), {.memory_bytes = 8 << 20}),
        step(cache) {}

  const Transformer& transformer() const { return model_.transformer(); }
  bool has_source() const { return model_.config().family == Family::encoder_decoder; }

  // Logits of every row of a text, without a cache.
  Rows recompute(const Tokens& text, const Tokens& source) {
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_};
    const PackedBatch batch({text}), from({source});
    const ModelInput input = has_source()
                                 ? ModelInput{.source = from.batch(), .target = batch.batch()}
                                 : ModelInput{.source = batch.batch()};
    Rows rows = logits(ctx, transformer().hidden(ctx, input));
    arena_.rewind(mark);
    return rows;
  }

  // A sequence with its source's keys, if the model has sources.
  KvCache::Sequence open(const Tokens& source) {
    const auto s = cache.open();
    if (!has_source()) return s;
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_};
    const PackedBatch from({source});
    EXPECT_TRUE(cache.add_source(s, from.batch().rows()));
    std::vector<KvTable> tables;
    transformer().cache_source(ctx, from.batch(), cache.view({&s, 1}, tables));
    arena_.rewind(mark);
    return s;
  }

  // Runs `step` and returns the logits of its rows.
  Rows run() {
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_};
    Rows rows = logits(ctx, transformer().decode(ctx, step.batch(), step.view()));
    arena_.rewind(mark);
    step.clear();
    return rows;
  }
  // The same of some rows only; the others are pruned in the last layer.
  Rows run_output_rows(const std::vector<int32_t>& output_rows) {
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_};
    Rows rows = logits(ctx, transformer().decode(ctx, step.batch(), step.view(), output_rows));
    arena_.rewind(mark);
    step.clear();
    return rows;
  }
  // The next tokens of one sequence.
  Rows run(KvCache::Sequence s, std::span<const int32_t> tokens) {
    EXPECT_TRUE(step.add(s, tokens));
    return run();
  }

 private:
  static Network network(const ModelConfig& config, std::optional<WeightType> packed) {
    Network floats(config, /*seed=*/7);
    if (!packed) return floats;
    ThreadPool pool(1);
    const NameFilter none("");
    return quantize(floats, {*packed, none, pool}).network;
  }

  Rows logits(Ctx& ctx, Var hidden) const {
    const Var y = transformer().logits(ctx, hidden);
    Rows rows;
    for (int64_t r = 0; r < y.rows(); ++r) {
      rows.emplace_back(y.value.row(r), y.value.row(r) + y.cols());
    }
    return rows;
  }

  Network model_;
  ThreadPool pool_;
  Arena arena_;

 public:
  KvCache cache;
  DecodeBatch step;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A family and a scheme of positions; each test goes through all shapes of attention.
struct Case {
  Family family;
  Position position;

  std::string name() const {
    return std::string(name_of(family)) + "_" + std::string(name_of(position));
  }
};

std::vector<Case> cases(const std::vector<Family>& families) {
  std::vector<Case> all;
  for (const Family family : families) {
    for (const Position position : {Position::none, Position::sinusoidal, Position::learned,
                                    Position::rope, Position::t5_bias, Position::alibi}) {
      all.push_back({family, position});
    }
  }
  return all;
}

class CachedDecodingTest : public testing::TestWithParam<Case> {
 protected:
  // Calls body(decoder) for MHA, GQA and MQA, and windows on all, some or none of the layers.
  template <class Body>
  void for_each_shape(const Body& body) {
    const std::vector<std::vector<int64_t>> patterns{{}, {7}, {21, 0}, {3, 18, 0}};
    for (const int kv_heads : {4, 2, 1}) {
      for (const std::vector<int64_t>& windows : patterns) {
        SCOPED_TRACE(std::to_string(kv_heads) + " kv_heads, windows " +
                     testing::PrintToString(windows));
        ModelConfig c = tiny(GetParam().family);
        c.position = GetParam().position;
        c.kv_heads = kv_heads;
        c.windows = windows;
        if (!windows.empty()) c.attention = AttentionSpan::sliding_window;
        check(c, GetParam().name());
        Decoder decoder(c);
        body(decoder);
        if (HasFatalFailure()) return;
      }
    }
  }

  static void expect_rows(const Rows& rows, const Rows& expected, size_t first) {
    ASSERT_LE(first + rows.size(), expected.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      ASSERT_TRUE(same_bits(rows[r], expected[first + r])) << "position " << first + r;
    }
  }

  const Tokens source = random_tokens(19, 1);
};

TEST_P(CachedDecodingTest, AnyChunksEqualRecomputationBitForBit) {
  for_each_shape([&](Decoder& decoder) {
    const Tokens text = random_tokens(45, 2);
    const Rows expected = decoder.recompute(text, source);
    for (const size_t chunk : {1, 5, 16, 45}) {
      SCOPED_TRACE("chunks of " + std::to_string(chunk));
      const auto s = decoder.open(source);
      for (size_t at = 0; at < text.size(); at += chunk) {
        const size_t rows = std::min(chunk, text.size() - at);
        expect_rows(decoder.run(s, std::span(text).subspan(at, rows)), expected, at);
        if (HasFatalFailure()) return;
      }
      decoder.cache.release(s);
    }
    EXPECT_EQ(decoder.cache.used_blocks(), 0);
  });
}

// Rows that are not output rows write K and V only and change nothing for the others: wherever
// norms are, with sequential and parallel residuals.
TEST(OutputRows, HaveTheBitsOfAllRowsAndAllRowsWriteKv) {
  const Tokens text = random_tokens(40, 3), source = random_tokens(9, 4);
  std::vector<ModelConfig> configs;
  for (const Family family : {Family::decoder_only, Family::encoder_decoder}) {
    for (const NormPlace place : {NormPlace::pre, NormPlace::post, NormPlace::both}) {
      configs.push_back(tiny(family));
      configs.back().norm_place = place;
    }
  }
  configs.push_back(tiny(Family::decoder_only));
  configs.back().residual = Residual::parallel, configs.back().norm_place = NormPlace::pre;
  for (const ModelConfig& config : configs) {
    SCOPED_TRACE(std::string(name_of(config.family)) + ", norms " +
                 std::string(name_of(config.norm_place)));
    for (const auto& packed : {std::optional<WeightType>(), std::optional(WeightType::f32)}) {
      Decoder decoder(config, 1, packed);
      const Rows expected = decoder.recompute(text, source);
      const auto s = decoder.open(source);
      const auto expect_wanted = [&](size_t at, size_t rows, const std::vector<int32_t>& wanted) {
        ASSERT_TRUE(decoder.step.add(s, std::span(text).subspan(at, rows)));
        const Rows found = decoder.run_output_rows(wanted);
        ASSERT_EQ(found.size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_TRUE(same_bits(found[i], expected[at + static_cast<size_t>(wanted[i])]))
              << "row " << wanted[i] << " from " << at;
        }
      };
      expect_wanted(0, 17, {});
      expect_wanted(17, 12, {11});
      expect_wanted(29, 6, {4, 0, 5});
      expect_wanted(35, 2, {0, 1});
      expect_wanted(37, 1, {0});
      expect_wanted(38, 1, {});
      expect_wanted(39, 1, {0});
    }
  }
}

// Sequences of different lengths, some generating and some still at their prompts.
TEST_P(CachedDecodingTest, ABatchEqualsEachSequenceAloneBitForBit) {
  for_each_shape([&](Decoder& decoder) {
    struct Running {
      Tokens source, text;
      Rows expected;
      size_t at = 0, chunk;
      KvCache::Sequence id;
    };
    std::vector<Running> running;
    for (const size_t length : {33, 1, 18, 40, 7}) {
      Running r;
      const auto seed = 10 + running.size();
      r.source = random_tokens(3 + static_cast<int64_t>(length) / 2, seed);
      r.text = random_tokens(static_cast<int64_t>(length), 100 + seed);
      r.expected = decoder.recompute(r.text, r.source);
      r.chunk = 1 + running.size() * 2 % 5;
      r.id = decoder.open(r.source);
      running.push_back(std::move(r));
    }
    while (true) {
      std::vector<Running*> batch;
      for (Running& r : running) {
        if (r.at == r.text.size()) continue;
        const size_t rows = std::min(r.chunk, r.text.size() - r.at);
        ASSERT_TRUE(decoder.step.add(r.id, std::span(r.text).subspan(r.at, rows)));
        batch.push_back(&r);
      }
      if (batch.empty()) break;
      const Rows all = decoder.run();
      auto row = all.begin();
      for (Running* r : batch) {
        const size_t rows = std::min(r->chunk, r->text.size() - r->at);
        expect_rows(Rows(row, row + static_cast<ptrdiff_t>(rows)), r->expected, r->at);
        if (HasFatalFailure()) return;
        r->at += rows, row += static_cast<ptrdiff_t>(rows);
      }
    }
  });
}

// Two beams that part in the middle of a block, and of them one parts again.
TEST_P(CachedDecodingTest, ForksGoTheirOwnWay) {
  for_each_shape([&](Decoder& decoder) {
    const Tokens beginning = random_tokens(21, 3);
    const auto a = decoder.open(source);
    decoder.run(a, beginning);
    const auto b = decoder.cache.fork(a);
    std::vector<std::pair<KvCache::Sequence, Tokens>> beams{{a, beginning}, {b, beginning}};
    for (int i = 0; i < 14; ++i) {
      if (i == 4) beams.emplace_back(decoder.cache.fork(b), beams[1].second);
      for (size_t beam = 0; beam < beams.size(); ++beam) {
        beams[beam].second.push_back(static_cast<int32_t>(7 * beam + static_cast<size_t>(i)));
        ASSERT_TRUE(decoder.step.add(beams[beam].first, {&beams[beam].second.back(), 1}));
      }
      const Rows rows = decoder.run();
      if (i % 3 != 1) continue;  // recomputation is what takes the time
      for (size_t beam = 0; beam < beams.size(); ++beam) {
        const Rows expected = decoder.recompute(beams[beam].second, source);
        ASSERT_TRUE(same_bits(rows[beam], expected.back())) << "beam " << beam << ", step " << i;
      }
    }
  });
}

class CachedPrefixTest : public CachedDecodingTest {};  // in models without a source

TEST_P(CachedPrefixTest, AnAdoptedBeginningEqualsOneComputed) {
  for_each_shape([&](Decoder& decoder) {
    const Tokens text = random_tokens(60, 4);
    const auto a = decoder.open({});
    for (size_t at = 0; at < text.size(); at += 20) {
      decoder.run(a, std::span(text).subspan(at, 20));
      decoder.cache.publish(a, text);
    }
    Tokens other = text;
    other[50] = (other[50] + 1) % kVocabulary;
    const auto b = decoder.open({});
    const auto known = static_cast<size_t>(decoder.cache.adopt(b, other));
    EXPECT_EQ(known, 48u);
    expect_rows(decoder.run(b, std::span(other).subspan(known)), decoder.recompute(other, {}),
                known);
  });
}

constexpr auto kName = [](const auto& suite) { return suite.param.name(); };
INSTANTIATE_TEST_SUITE_P(Configs, CachedDecodingTest,
                         testing::ValuesIn(cases({Family::decoder_only, Family::encoder_decoder})),
                         kName);
INSTANTIATE_TEST_SUITE_P(Configs, CachedPrefixTest,
                         testing::ValuesIn(cases({Family::decoder_only})), kName);

TEST(CachedDecoding, TheNumberOfThreadsChangesNothing) {
  const ModelConfig config = tiny(Family::encoder_decoder);
  const Tokens source = random_tokens(30, 1), text = random_tokens(40, 2);
  Rows expected;
  for (const int threads : {1, 2, 3}) {
    Decoder decoder(config, threads);
    const auto s = decoder.open(source);
    decoder.run(s, std::span(text).first(30));
    Rows rows;
    for (size_t at = 30; at < 40; ++at) rows.push_back(decoder.run(s, {&text[at], 1})[0]);
    if (expected.empty()) expected = rows;
    for (size_t r = 0; r < rows.size(); ++r) EXPECT_TRUE(same_bits(rows[r], expected[r]));
  }
}

// Packed weights keep all of it: one row, a few and many go through different kernels.
class PackedDecodingTest : public testing::TestWithParam<WeightType> {};

TEST_P(PackedDecodingTest, ChunksBatchesAndThreadsChangeNoBit) {
  for (const Family family : {Family::decoder_only, Family::encoder_decoder}) {
    const Tokens source = random_tokens(19, 1);
    const std::vector<Tokens> texts{random_tokens(45, 2), random_tokens(12, 3),
                                    random_tokens(30, 4)};
    std::vector<Rows> expected;
    for (const int threads : {1, 3}) {
      Decoder decoder(tiny(family), threads, GetParam());
      for (size_t t = 0; t < texts.size(); ++t) {
        if (threads == 1) expected.push_back(decoder.recompute(texts[t], source));
        for (const size_t chunk : {size_t{1}, size_t{3}, size_t{8}, texts[t].size()}) {
          const auto s = decoder.open(source);
          for (size_t at = 0; at < texts[t].size(); at += chunk) {
            const size_t rows = std::min(chunk, texts[t].size() - at);
            const Rows found = decoder.run(s, std::span(texts[t]).subspan(at, rows));
            for (size_t r = 0; r < rows; ++r) {
              ASSERT_TRUE(same_bits(found[r], expected[t][at + r])) << chunk << ", " << at + r;
            }
          }
          decoder.cache.release(s);
        }
      }
      std::vector<KvCache::Sequence> together;
      for (const Tokens& text : texts) {
        together.push_back(decoder.open(source));
        ASSERT_TRUE(decoder.step.add(together.back(), text));
      }
      const Rows all = decoder.run();
      size_t row = 0;
      for (const Rows& rows : expected) {
        for (const std::vector<float>& logits : rows) {
          ASSERT_TRUE(same_bits(all[row], logits)) << "row " << row;
          ++row;
        }
      }
    }
  }
}

TEST(CachedDecoding, PackingFloatsChangesNoBit) {
  for (const Family family : {Family::decoder_only, Family::encoder_decoder}) {
    const Tokens source = random_tokens(19, 1), text = random_tokens(12, 3);
    Decoder plain(tiny(family)), packed(tiny(family), 1, WeightType::f32);
    const Rows expected = plain.recompute(text, source), found = packed.recompute(text, source);
    for (size_t r = 0; r < text.size(); ++r) ASSERT_TRUE(same_bits(found[r], expected[r])) << r;
  }
}

std::vector<WeightType> all_weight_types() {
  std::vector<WeightType> types;
  for (const kernels::WeightTypeInfo& info : kernels::weight_types()) types.push_back(info.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, PackedDecodingTest, testing::ValuesIn(all_weight_types()),
                         [](const auto& test) { return weight_type_name(test.param); });

// A batch that does not go on where the cache ends is our mistake, and is said.
TEST(CachedDecoding, PositionsMustGoOnFromTheCache) {
  Decoder decoder(tiny(Family::decoder_only));
  const auto s = decoder.open({});
  decoder.run(s, Tokens{1, 2, 3});
  ASSERT_TRUE(decoder.cache.extend(s, 2));
  ThreadPool pool(1);
  Arena arena(1 << 20);
  Ctx ctx{pool, arena};
  std::vector<KvTable> tables;
  const KvView view = decoder.cache.view({&s, 1}, tables);
  EXPECT_THROW(decoder.transformer().decode(ctx, PackedBatch({{4, 5}}).batch(), view), Error);
}

// 100,000 positions with a window of 256: the cache holds no more than after the first thousand.
TEST(CachedDecoding, AWindowsMemoryStaysTheSameAsTheTextGrows) {
  for (const Position position : {Position::rope, Position::alibi}) {
    ModelConfig c = tiny(Family::decoder_only);
    c.width = 8, c.heads = 2, c.ffn = 8, c.decoder_layers = 1, c.position = position;
    c.attention = AttentionSpan::sliding_window, c.windows = {256};
    Decoder decoder(c);
    const auto s = decoder.open({});
    const Tokens chunk = random_tokens(20, 5);
    int64_t at_1000 = 0;
    Rows at_2000, at_100000;
    for (int64_t at = 0; at < 100'000; at += 20) {
      Rows rows = decoder.run(s, chunk);
      if (at + 20 == 1000) at_1000 = decoder.cache.used_blocks();
      if (at + 20 == 2000) at_2000 = rows;
      at_100000 = std::move(rows);
      ASSERT_LE(decoder.cache.used_blocks(), decoder.cache.blocks_at_most(at + 20, 20, 0));
    }
    EXPECT_GT(at_1000, 0);
    EXPECT_LE(decoder.cache.used_blocks(), at_1000);
    // What repeats every 20 tokens looks the same everywhere, seen by distance alone.
    if (position == Position::alibi) {
      for (size_t r = 0; r < 20; ++r) {
        for (size_t i = 0; i < at_2000[r].size(); ++i) {
          EXPECT_NEAR(at_100000[r][i], at_2000[r][i], 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed
