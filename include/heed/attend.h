// Attention maps: the attention weights of every layer and head, and pictures of them.
//
//   heed::AttentionView view = heed::attend(model, {.text = "The cat sat."});
//   std::ofstream("map.html") << heed::attention_html(view, "The cat sat.");
//
// A row of a map is the attention distribution of one token (the query) over the keys; it sums to
// 1. Pictures are self-contained: no network, no font, no external script.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/tasks.h"

namespace heed {

// encoder: self-attention of the source. decoder: self-attention of the target, or of a
// decoder-only model. cross: from the target to the source.
enum class AttentionKind { encoder, decoder, cross };
template <>
inline constexpr std::array<EnumName<AttentionKind>, 3> kEnumNames<AttentionKind>{{
    {AttentionKind::encoder, "encoder"},
    {AttentionKind::decoder, "decoder"},
    {AttentionKind::cross, "cross"},
}};

struct AttentionLayer {
  AttentionKind kind = AttentionKind::encoder;
  int layer = 0;  // from 0
  int heads = 0;
  int64_t queries = 0, keys = 0;
  std::vector<float> probabilities{};  // [heads, queries, keys]

  float at(int head, int64_t query, int64_t key) const {
    return probabilities[static_cast<size_t>((head * queries + query) * keys + key)];
  }
};

struct AttentionToken {
  int32_t id = -1;
  std::string text{};  // the id without a tokenizer
};

struct AttentionView : TaskResult {
  std::vector<AttentionToken> source{}, target{};
  std::vector<AttentionLayer> layers{};  // by kind, then by layer
  // Whether an end token follows the target: not if it was truncated, or if the model's own
  // translation reached its maximum length.
  bool target_ends = true;

  const std::vector<AttentionToken>& queries(AttentionKind kind) const {
    return kind == AttentionKind::encoder ? source : target;
  }
  const std::vector<AttentionToken>& keys(AttentionKind kind) const {
    return kind == AttentionKind::decoder ? target : source;
  }
};

// Limits for a server.
struct AttendLimits {
  // Of all maps together: layers × heads × tokens². Longer texts are truncated. 0: no limit.
  int64_t max_weights = 0;
  std::function<bool()> is_cancelled{};  // polled; true throws cancelled
};

// Encoder-only and decoder-only models take the text (or the pair). Encoder-decoder models take the
// source and a target: `second`, or the model's own translation. The target is the decoder's input:
// with the decoder start token, without the end token.
AttentionView attend(const Model& model, const TaskInput& input, const TaskOptions& options = {},
                     const AttendLimits& limits = {});

// An interactive page: choose kind, layer and head; point at a token to see its attention.
std::string attention_html(const AttentionView& view, std::string_view title);
// Every layer and head as a small map.
std::string attention_svg(const AttentionView& view, std::string_view title);
// All weights, with that many significant digits and none below 1e-6; 0: exact.
std::string attention_json(const AttentionView& view, int digits = 0);

}  // namespace heed
