// A batch that owns its rows: sequences of ids, concatenated.
//
//   PackedBatch packed({{5, 6, 7}, {8, 9}});
//   model.transformer().hidden(ctx, {.source = packed.batch()});
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "ops/batch.h"

namespace heed {

struct PackedBatch {
  PackedBatch() = default;
  // Token types are 0 where none are given.
  explicit PackedBatch(const std::vector<std::vector<int32_t>>& sequences,
                       const std::vector<std::vector<int32_t>>& types = {}) {
    for (const std::vector<int32_t>& sequence : sequences) {
      tokens.insert(tokens.end(), sequence.begin(), sequence.end());
      const size_t first = positions.size();
      positions.resize(tokens.size());
      std::iota(positions.begin() + static_cast<ptrdiff_t>(first), positions.end(), 0);
      offsets.push_back(static_cast<int32_t>(tokens.size()));
    }
    for (const std::vector<int32_t>& sequence : types) {
      token_types.insert(token_types.end(), sequence.begin(), sequence.end());
    }
    if (types.empty()) token_types.resize(tokens.size());
  }

  // Borrows this.
  Batch batch() const {
    return {
        .tokens = tokens, .positions = positions, .token_types = token_types, .offsets = offsets};
  }

  std::vector<int32_t> tokens, positions, token_types;
  std::vector<int32_t> offsets{0};
};

}  // namespace heed
