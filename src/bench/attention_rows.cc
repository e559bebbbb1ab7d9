// Attention forward over long sequences: its share of the GEMM limit, and the time for double the
// length with a window.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/philox.h"
#include "bench/limits.h"
#include "bench/row.h"
#include "bench/turns.h"
#include "kernels/attention/attention.h"

namespace heed::bench {
namespace {

using kernels::Attention;
using kernels::kUnlimited;
using kernels::KvBlocks;
using kernels::KvTable;

constexpr int kHeads = 8, kHeadDim = 64;
constexpr int64_t kWidth = int64_t{kHeads} * kHeadDim;

struct Shape {
  int64_t sequences, length;
  int64_t before = kUnlimited, after = kUnlimited;
  bool in_blocks = false;  // K and V are in KV blocks

  int64_t rows() const { return sequences * length; }

  // Pairs of a query and a key that it sees, in all sequences.
  double pairs() const {
    double seen = 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t first = std::max<int64_t>(i - before, 0);
      const int64_t end = std::min(after < length ? i + after + 1 : length, length);
      seen += static_cast<double>(end - first);
    }
    return seen * static_cast<double>(sequences);
  }
};

float* random_matrix(Arena& memory, int64_t rows, Random& random) {
  float* values = memory.allocate<float>(static_cast<size_t>(rows * kWidth));
  std::generate_n(values, rows * kWidth, [&] { return random.normal(); });
  return values;
}

// KV blocks, in order, with K and V of all sequences.
class Cache {
 public:
  Cache(ThreadPool& pool, const Shape& s, const std::vector<int32_t>& offsets, const Attention& a)
      : blocks_each_((s.length + kernels::kKvBlock - 1) / kernels::kKvBlock),
        memory_(static_cast<size_t>(s.sequences * blocks_each_ * kBlockFloats) * sizeof(float)) {
    const int64_t count = s.sequences * blocks_each_;
    for (int64_t i = 0; i < count; ++i) ids_.push_back(static_cast<int32_t>(i));
    for (int64_t i = 0; i < s.sequences; ++i) {
      tables_.push_back({ids_.data() + i * blocks_each_, 0, s.length});
    }
    blocks_ = {.kv_heads = kHeads,
               .head_dim = kHeadDim,
               .data = memory_.allocate<float>(static_cast<size_t>(count * kBlockFloats)),
               .block_stride = kBlockFloats,
               .tables = tables_.data(),
               .sequences = s.sequences};
    kernels::write_kv(
        pool, blocks_,
        {.offsets = offsets.data(), .k = a.k, .v = a.v, .k_stride = kWidth, .v_stride = kWidth});
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const KvBlocks& blocks() const { return blocks_; }

 private:
  static constexpr int64_t kBlockFloats = kernels::kv_block_floats(kHeads, kHeadDim);

  int64_t blocks_each_;
  Arena memory_;
  std::vector<int32_t> ids_;
  std::vector<KvTable> tables_;
  KvBlocks blocks_;
};

double flops(const Shape& s) { return 4 * s.pairs() * static_cast<double>(kWidth); }

Time measure(const Shape& s, Bench& bench) {
  std::vector<int32_t> offsets;
  for (int64_t i = 0; i <= s.sequences; ++i) offsets.push_back(static_cast<int32_t>(i * s.length));
  Arena memory(4 * (static_cast<size_t>(s.rows() * kWidth) * sizeof(float) + Arena::kAlignment));
  Random random({.seed = bench.seed, .site = 4});
  Attention a;
  a.heads = a.kv_heads = kHeads, a.head_dim = kHeadDim;
  a.sequences = s.sequences;
  a.query_offsets = a.key_offsets = offsets.data();
  a.q = random_matrix(memory, s.rows(), random);
  a.k = random_matrix(memory, s.rows(), random), a.v = random_matrix(memory, s.rows(), random);
  a.q_stride = a.k_stride = a.v_stride = kWidth;
  a.scale = 1 / std::sqrt(static_cast<float>(kHeadDim));
  a.before = s.before, a.after = s.after;
  std::optional<Cache> cache;
  if (s.in_blocks) {
    cache.emplace(bench.pool, s, offsets, a);
    a.blocks = &cache->blocks();
  }
  float* out = memory.allocate<float>(static_cast<size_t>(s.rows() * kWidth));
  const auto floats =
      static_cast<size_t>(kernels::attention_scratch_floats(a, false) * bench.pool.threads());
  Arena scratch_memory(floats * sizeof(float));
  float* scratch = scratch_memory.allocate<float>(floats);
  const auto run = [&] {
    const Clock::time_point start = Clock::now();
    kernels::attention_forward(bench.pool, a, {.out = out, .out_stride = kWidth}, scratch);
    return seconds_since(start);
  };
  // Alternates with the limit, because these rows have an aim.
  double best = run();
  std::vector<double> turn;
  PairedShares shares;
  if (!bench.gemm) bench.gemm = std::make_shared<GemmLimit>(bench.pool);
  in_turns(
      bench.seconds, best, [&] { turn.push_back(run()); },
      [&](double seconds) {
        best = std::min(best, *std::ranges::min_element(turn));
        shares.add(std::exchange(turn, {}), bench.gemm->sample(seconds));
      });
  return {.seconds = best, .fraction_of_limit = shares.share(flops(s))};
}

void add(const char* name, const Shape& s, std::vector<Row>& rows) {
  const double matrices = 4 * sizeof(float) * static_cast<double>(s.rows() * kWidth);
  rows.push_back({.name = std::string("attention long ") + name + " forward",
                  .shape = std::to_string(s.sequences) + "x" + std::to_string(s.length) + "x" +
                           std::to_string(kHeads) + "x" + std::to_string(kHeadDim),
                  .cost = {flops(s), matrices},
                  .limit = Limit::gemm,
                  .traffic = Traffic::copy,
                  .measure = [s](Bench& bench) { return measure(s, bench); }});
}

}  // namespace

void add_attention_rows(std::vector<Row>& rows) {
  constexpr int64_t kRows = 8192;  // in total, for any length
  for (const int64_t length : {512, 1024, 2048}) {
    const int64_t sequences = kRows / length;
    add("full", {sequences, length}, rows);
    add("causal", {sequences, length, kUnlimited, 0}, rows);
    add("cached", {sequences, length, kUnlimited, 0, true}, rows);
  }
  constexpr int64_t kWindow = 128;                   // itself and those before it
  for (const int64_t length : {1024, 2048, 4096}) {  // the same number of sequences for each length
    add("window", {2, length, kWindow - 1, 0}, rows);
    add("cached window", {2, length, kWindow - 1, 0, true}, rows);
  }
}

}  // namespace heed::bench
