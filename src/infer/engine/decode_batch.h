// The batch of one decoder pass: the next tokens of each sequence, with KV blocks for them.
//
//   step.clear();
//   step.add(running, {&next_token, 1});      // decode step
//   step.add(waiting, chunk_of_a_prompt);     // prefill
//   Var hidden = transformer.decode(ctx, step.batch(), step.view());
//   Var logits = transformer.logits(ctx, take_rows(ctx, hidden, step.last_rows()));
//
// Reused from step to step, it allocates nothing once it has grown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/cache/kv_cache.h"

namespace heed {

class DecodeBatch {
 public:
  // Borrows the cache.
  explicit DecodeBatch(KvCache& cache) : cache_(cache) {}

  void clear();
  // At least one token; each sequence once in a batch. False: not enough KV blocks, nothing
  // changed.
  [[nodiscard]] bool add(KvCache::Sequence sequence, std::span<const int32_t> tokens);

  bool empty() const { return sequences_.empty(); }
  int64_t rows() const { return static_cast<int64_t>(tokens_.size()); }
  std::span<const KvCache::Sequence> sequences() const { return sequences_; }
  // The row of each sequence's last token.
  std::span<const int32_t> last_rows() const { return last_rows_; }

  // Views, valid until the next clear() or add().
  Batch batch() const;
  KvView view() { return cache_.view(sequences_, tables_); }

 private:
  KvCache& cache_;
  std::vector<KvCache::Sequence> sequences_;
  std::vector<int32_t> tokens_, positions_, token_types_, offsets_{0}, last_rows_;
  std::vector<KvTable> tables_;
};

}  // namespace heed
