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
  HEED_CHECK(c.family != Family::encoder_only, "kv_layout: a model without a decoder");
  const int heads = c.decoder_heads ? c.decoder_heads : c.heads;
  KvLayout layout;
  layout.kv_heads = c.kv_heads ? c.kv_heads : heads;
  layout.head_dim = c.head_dim ? c.head_dim : static_cast<int>(c.width / heads);
  const auto layers = static_cast<size_t>(c.decoder_layers);
  layout.self.resize(layers);
  if (c.family == Family::encoder_decoder) layout.cross.resize(layers);

  std::vector<Kind> kinds;
  for (size_t i = 0; i < layers; ++i) {
    const bool windowed = c.attention != AttentionSpan::full;
    const int64_t window = windowed ? c.windows[i % c.windows.size()] : 0;
    add_layer(kinds, {.cross = false, .window = window}, layout.self[i]);
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
