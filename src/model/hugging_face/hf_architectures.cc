#include "model/hugging_face/hf_architectures.h"

#include <algorithm>

namespace heed {

void HfNames::linear(const std::string& heed, const std::vector<std::string>& parts,
                     HfLayout layout) {
  for (const std::string suffix : {".weight", ".bias"}) {
    HfName row{heed + suffix, {}, layout, in_head_};
    for (const std::string& part : parts) row.parts.push_back(part + suffix);
    // A bias has nothing to transpose.
    if (suffix == ".bias" && layout == HfLayout::transposed) row.layout = HfLayout::plain;
    rows_.push_back(std::move(row));
  }
}

void HfNames::norm(const std::string& heed, const std::string& name) {
  rows_.push_back({heed + ".gamma", {name + ".weight"}, HfLayout::plain, in_head_});
  rows_.push_back({heed + ".beta", {name + ".bias"}, HfLayout::plain, in_head_});
}

HfName& HfNames::tensor(const std::string& heed, const std::string& name) {
  rows_.push_back({heed, {name}, HfLayout::plain, in_head_});
  return rows_.back();
}

std::span<const HfArchitecture> hf_architectures() {
  static const std::vector<HfArchitecture> all = [] {
    std::vector<HfArchitecture> list;
    for (auto family :
         {hf_bert_family(), hf_gpt_family(), hf_llama_family(), hf_t5_family(), hf_bart_family()}) {
      std::move(family.begin(), family.end(), std::back_inserter(list));
    }
    return list;
  }();
  return all;
}

std::vector<int64_t> shortest_pattern(const std::vector<int64_t>& windows, int layers) {
  if (windows.empty()) return {};
  const auto at = [&](int i) { return windows[static_cast<size_t>(i) % windows.size()]; };
  const int known = std::max(layers, 1);
  for (int period = 1; period < known; ++period) {
    bool repeats = true;
    for (int i = period; i < known && repeats; ++i) repeats = at(i) == at(i % period);
    if (!repeats) continue;
    std::vector<int64_t> pattern;
    for (int i = 0; i < period; ++i) pattern.push_back(at(i));
    return pattern;
  }
  std::vector<int64_t> pattern;
  for (int i = 0; i < known; ++i) pattern.push_back(at(i));
  return pattern;
}

void set_windows(ModelConfig& c, const std::vector<int64_t>& windows, int layers) {
  c.windows = shortest_pattern(windows, std::min(layers, kMostLayers));
  const bool any = std::any_of(c.windows.begin(), c.windows.end(), [](auto w) { return w != 0; });
  if (!any) c.windows.clear();
  c.attention = any ? AttentionSpan::sliding_window : AttentionSpan::full;
}

int64_t window_of(const ModelConfig& c, int layer) {
  if (c.windows.empty()) return 0;
  return c.windows[static_cast<size_t>(layer) % c.windows.size()];
}

}  // namespace heed
