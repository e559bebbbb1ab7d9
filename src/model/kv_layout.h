// The layout of a paged KV cache, and a batch's view of it.
//
// The cache consists of blocks of equal size, each with K and V of kKvBlock positions for
// `layers_per_block` layers. Layers that keep the same positions form a group, which has one block
// table per sequence. A model with full attention in all layers has one group. Layers with different
// windows are in different groups, so that local layers can free blocks that global layers still
// need. In an encoder_decoder model the K and V of cross-attention form groups too; all beams of a
// sequence share them.
//
// infer/cache/kv_cache.h owns blocks and tables; the Transformer only borrows a KvView.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace heed {

struct KvLayout {
  struct Group {
    bool cross = false;  // positions of the source; false: of the sequence itself
    int64_t window = 0;  // nearest positions that a query sees, its own included; 0: all
  };
  struct Place {
    int group = 0;
    int layer = 0;  // within the group's blocks
  };

  int kv_heads = 0;
  int head_dim = 0;
  int layers_per_block = 0;
  std::vector<Group> groups;
  std::vector<Place> self, cross;  // [decoder layers]; cross is empty in decoder_only models

  int64_t layer_floats() const { return kernels::kv_block_floats(kv_heads, head_dim); }
  int64_t block_floats() const { return layers_per_block * layer_floats(); }
};

// Of a model with a decoder.
KvLayout kv_layout(const ModelConfig& config);

// The blocks of a batch's sequences.
struct KvView {
  const KvLayout* layout = nullptr;
  float* data = nullptr;            // [blocks, block_floats]; not touched while measuring
  std::span<const KvTable> tables;  // [groups, sequences of the batch]

  int64_t sequences() const { return static_cast<int64_t>(tables.size() / layout->groups.size()); }
  KvBlocks layer(const KvLayout::Place& place) const {
    return {.kv_heads = layout->kv_heads,
            .head_dim = layout->head_dim,
            .data = data ? data + place.layer * layout->layer_floats() : nullptr,
            .block_stride = layout->block_floats(),
            .tables = tables.data() + place.group * sequences(),
            .sequences = sequences()};
  }
};

}  // namespace heed
