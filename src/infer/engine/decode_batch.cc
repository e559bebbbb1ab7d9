#include "infer/engine/decode_batch.h"

#include "base/check.h"

namespace heed {

void DecodeBatch::clear() {
  sequences_.clear();
  tokens_.clear(), positions_.clear(), token_types_.clear(), last_rows_.clear();
  offsets_.resize(1);
}

bool DecodeBatch::add(KvCache::Sequence sequence, std::span<const int32_t> tokens) {
  HEED_CHECK(!tokens.empty(), "decode batch: tokens must not be empty");
  const int64_t first = cache_.length(sequence), rows = static_cast<int64_t>(tokens.size());
  if (!cache_.extend(sequence, rows)) return false;
  sequences_.push_back(sequence);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (int64_t i = 0; i < rows; ++i) positions_.push_back(static_cast<int32_t>(first + i));
  token_types_.resize(tokens_.size());
  offsets_.push_back(static_cast<int32_t>(tokens_.size()));
  last_rows_.push_back(offsets_.back() - 1);
  return true;
}

Batch DecodeBatch::batch() const {
  return {
      .tokens = tokens_, .positions = positions_, .token_types = token_types_, .offsets = offsets_};
}

}  // namespace heed
