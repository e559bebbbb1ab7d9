#include "decoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "infer/cache/kv_cache.h"
#include "infer/engine/decode_batch.h"

namespace heed::matrix {
namespace {

std::span<const int32_t> tokens_of(const PackedBatch& batch, size_t s) {
  return std::span(batch.tokens)
      .subspan(static_cast<size_t>(batch.offsets[s]),
               static_cast<size_t>(batch.offsets[s + 1] - batch.offsets[s]));
}

}  // namespace

std::vector<float> cached_logits(const Network& model, const Sample& sample, int64_t chunk) {
  const Transformer& t = model.transformer();
  const bool has_source = model.config().family == Family::encoder_decoder;
  const PackedBatch& input = has_source ? sample.target : sample.source;
  const size_t sequences = input.offsets.size() - 1;
  ThreadPool pool(1);
  Arena arena(size_t{16} << 20);
  Ctx ctx{pool, arena};
  KvCache cache(t.kv_layout(), {.memory_bytes = 8 << 20});

  std::vector<KvCache::Sequence> open;
  for (size_t s = 0; s < sequences; ++s) open.push_back(cache.open());
  if (has_source) {
    const Batch source = sample.source.batch();
    for (size_t s = 0; s < sequences; ++s) {
      EXPECT_TRUE(cache.add_source(open[s], source.offsets[s + 1] - source.offsets[s]));
    }
    std::vector<KvTable> tables;
    t.cache_source(ctx, source, cache.view(open, tables));
  }

  const int64_t width = model.config().output_vocabulary();
  std::vector<float> all(input.tokens.size() * static_cast<size_t>(width));
  DecodeBatch step(cache);
  for (int64_t done = 0;; done += chunk) {
    step.clear();
    std::vector<int64_t> rows;  // of `all`, for each row of the step
    for (size_t s = 0; s < sequences; ++s) {
      const std::span<const int32_t> tokens = tokens_of(input, s);
      if (done >= std::ssize(tokens)) continue;
      const auto count = std::min(chunk, std::ssize(tokens) - done);
      EXPECT_TRUE(
          step.add(open[s], tokens.subspan(static_cast<size_t>(done), static_cast<size_t>(count))));
      for (int64_t i = 0; i < count; ++i) rows.push_back(input.offsets[s] + done + i);
    }
    if (step.empty()) return all;
    const Arena::Mark mark = arena.mark();
    const Var logits = t.logits(ctx, t.decode(ctx, step.batch(), step.view()));
    for (int64_t r = 0; r < logits.rows(); ++r) {
      std::copy_n(logits.value.row(r), width, all.data() + rows[static_cast<size_t>(r)] * width);
    }
    arena.rewind(mark);
  }
}

}  // namespace heed::matrix
