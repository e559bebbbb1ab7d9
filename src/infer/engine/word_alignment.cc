#include "infer/engine/word_alignment.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

// Cross-attention of the last `rows` tokens of `target`, averaged over the heads of the layer that
// aligns best.  → [rows, source]
std::vector<std::vector<float>> cross_attention(const Network& network,
                                                std::span<const int32_t> source,
                                                std::span<const int32_t> target, size_t rows,
                                                const RunInArena& run) {
  const Transformer& transformer = network.transformer();
  using Sequences = std::vector<std::vector<int32_t>>;
  const PackedBatch sources(Sequences{{source.begin(), source.end()}});
  // A token is predicted at the row of the token before it.
  const PackedBatch targets(Sequences{{target.begin(), target.end() - 1}});
  std::vector<std::vector<float>> result(rows, std::vector<float>(source.size()));
  run([&](Ctx& ctx) {
    AttentionMaps maps;
    transformer.hidden(
        ctx, {.source = sources.batch(), .target = targets.batch(), .decoder_maps = &maps});
    if (ctx.measuring()) return;
    // The penultimate layer aligns words best (Garg et al. 2019).
    const int layers = network.config().decoder_layers;
    const std::string name = "decoder." + std::to_string(std::max(layers - 2, 0)) + ".cross";
    const auto map = std::ranges::find(maps, name, &AttentionMap::name);
    HEED_CHECK(map != maps.end(), "word alignment: the decoder must have a cross-attention map");
    const size_t keys = source.size(), queries = target.size() - 1;
    const size_t heads = static_cast<size_t>(map->probabilities.size()) / (keys * queries);
    const float* p = map->probabilities.data;
    for (size_t h = 0; h < heads; ++h) {
      for (size_t r = 0; r < rows; ++r) {
        const float* row = p + (h * queries + queries - rows + r) * keys;
        for (size_t k = 0; k < keys; ++k) result[r][k] += row[k] / static_cast<float>(heads);
      }
    }
  });
  return result;
}

}  // namespace

std::vector<Alignment> align_words(const Model& model, std::span<const int32_t> source,
                                   std::span<const TextSpan> source_spans, const Answer& answer,
                                   const RunInArena& run) {
  std::vector<Alignment> alignments;
  const std::span<const int32_t> ids(answer.ids);
  const auto rows = static_cast<size_t>(answer.new_tokens);
  if (source.empty() || rows == 0) return alignments;
  const size_t prompt = ids.size() - rows;
  const auto weights = cross_attention(model.network(), source, ids, rows, run);
  for (size_t r = 0; r < rows; ++r) {
    Alignment alignment{.token = static_cast<int64_t>(prompt + r)};
    if (model.has_tokenizer()) {
      const auto length = [&](size_t n) {
        return static_cast<int64_t>(
            std::min(model.tokenizer().decode(ids.first(n)).size(), answer.text.size()));
      };
      alignment.target = {length(prompt + r), length(prompt + r + 1)};
      if (alignment.target.begin >= alignment.target.end) continue;  // not part of the text
    }
    const auto is_text = [&](size_t i) {
      return source_spans.empty() || source_spans[i].begin < source_spans[i].end;
    };
    std::optional<size_t> best;
    for (size_t i = 0; i < source.size(); ++i) {
      if (is_text(i) && (!best || weights[r][i] > weights[r][*best])) best = i;
    }
    if (!best) continue;
    alignment.source_token = static_cast<int64_t>(*best);
    if (!source_spans.empty()) alignment.source = source_spans[*best];
    alignment.weight = weights[r][*best];
    alignments.push_back(alignment);
  }
  return alignments;
}

}  // namespace heed
