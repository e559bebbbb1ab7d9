// Attention maps: where every token looks, in every layer and head; and pictures of them.
//
//   heed::AttentionView view = heed::attend(model, {.text = "The cat sat."});
//   std::ofstream("map.html") << heed::attention_html(view, "The cat sat.");
//
// A row of a map is one token (the query) and says how its attention is shared out over the others
// (the keys): numbers that add up to 1. Pictures need nothing but themselves: no network, no font,
// no script from elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/tasks.h"

namespace heed {

// encoder: the source at itself. decoder: the target (all that a decoder-only model reads) at
// itself. cross: the target at the source.
enum class AttentionKind { encoder, decoder, cross };
const char* name(AttentionKind kind);

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
  std::string text{};  // as people read it; the id where there is no tokenizer
};

struct AttentionView : TaskResult {
  std::vector<AttentionToken> source{}, target{};
  std::vector<AttentionLayer> layers{};  // by kind, then by layer
  // Whether what follows the last token of the target is the text's end: not where the target was
  // cut, or where the model's own was still going on at its greatest length.
  bool target_ends = true;

  const std::vector<AttentionToken>& queries(AttentionKind kind) const {
    return kind == AttentionKind::encoder ? source : target;
  }
  const std::vector<AttentionToken>& keys(AttentionKind kind) const {
    return kind == AttentionKind::decoder ? target : source;
  }
};

// Of who looks for others, and must end.
struct AttendLimits {
  // Of all maps together: layers × heads × tokens². A text that has more is cut. 0: any number.
  int64_t max_weights = 0;
  std::function<bool()> is_cancelled{};  // asked now and then; when it says so, throws cancelled
};

// Encoder-only and decoder-only models look at the text (or the pair). Encoder-decoder models look
// at source and target: `second`, or what the model itself translates the source to. The target is
// as the decoder reads it: the token it starts with first, and not the one that ends the text.
AttentionView attend(const Model& model, const TaskInput& input, const TaskOptions& options = {},
                     const AttendLimits& limits = {});

// A page to explore: choose kind, layer and head, point at a token to see where it looks.
std::string attention_html(const AttentionView& view, std::string_view title);
// Every layer and head as a small map.
std::string attention_svg(const AttentionView& view, std::string_view title);
// All numbers, with so many significant digits and none below a millionth; 0: exactly.
std::string attention_json(const AttentionView& view, int digits = 0);

}  // namespace heed
