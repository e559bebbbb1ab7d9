#include "model/kv_layout.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace heed {
namespace {

// Layers that keep the same positions, before they are cut into groups of equal size.
struct Kind {
  KvLayout::Group group;
  std::vector<KvLayout::Place*> layers;
};

void add_layer(std::vector<Kind>& kinds, const KvLayout::Group& group, KvLayout::Place& place) {
  const auto same = [&](const Kind& kind) {
    return kind.group.cross == group.cross && kind.group.window == group.window;
  };
  auto kind = std::find_if(kinds.begin(), kinds.end(), same);
  if (kind == kinds.end()) kind = kinds.insert(kind, Kind{group, {}});
  kind->layers.push_back(&place);
}

}  // namespace

KvLayout kv_layout(const ModelConfig& c) {
  HEED_CHECK(c.has_decoder(), "kv_layout: the model must have a decoder");
  const StackConfig decoder = c.stack(Side::decoder);
  KvLayout layout;
  layout.kv_heads = decoder.kv_heads;
  layout.head_dim = decoder.head_dim;
  const auto layers = static_cast<size_t>(decoder.layers);
  layout.self.resize(layers);
  if (decoder.cross_attention) layout.cross.resize(layers);

  std::vector<Kind> kinds;
  for (size_t i = 0; i < layers; ++i) {
    add_layer(kinds, {.cross = false, .window = decoder.window(i)}, layout.self[i]);
  }
  for (KvLayout::Place& place : layout.cross) add_layer(kinds, {.cross = true}, place);

  // Blocks of one size serve all kinds, so no memory is set aside for one that does not need it:
  // the largest number of layers that divides every kind.
  size_t common = 0;
  for (const Kind& kind : kinds) common = std::gcd(common, kind.layers.size());
  layout.layers_per_block = static_cast<int>(common);
  for (const Kind& kind : kinds) {
    for (size_t i = 0; i < kind.layers.size(); ++i) {
      if (i % common == 0) layout.groups.push_back(kind.group);
      *kind.layers[i] = {.group = static_cast<int>(layout.groups.size()) - 1,
                         .layer = static_cast<int>(i % common)};
    }
  }
  return layout;
}

}  // namespace heed
