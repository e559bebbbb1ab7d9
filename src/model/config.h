// The configuration of a model: one field for each part that Transformer variants exchange. Every
// supported model is a combination of these fields.
//
//   ModelConfig c = preset("transformer-base");   // model/presets.h
//   c.position = Position::rope;
//   for (const std::string& problem : validate(c)) …
//
// describe() lists each field once; JSON, flags and documentation are generated from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/enum_names.h"
#include "kernels/rows/activation.h"
#include "ops/ops.h"

namespace heed {

enum class Family { encoder_decoder, encoder_only, decoder_only };

enum class Position { none, sinusoidal, learned, rope, t5_bias, alibi, kerple };

// The relative attention bias of a position scheme (T5, ALiBi, KERPLE); none for the others.
constexpr RelativeBiasKind relative_bias_kind(Position position) {
  switch (position) {
    case Position::t5_bias:
      return RelativeBiasKind::t5;
    case Position::alibi:
      return RelativeBiasKind::alibi;
    case Position::kerple:
      return RelativeBiasKind::kerple;
    default:
      return RelativeBiasKind::none;
  }
}

// pre: x + f(norm(x)). post: norm(x + f(x)), the paper. both: x + norm(f(norm(x))), Gemma 2.
enum class NormPlace { pre, post, both };

// sequential: attention, then FFN. parallel: x + attention(x) + ffn(x), GPT-NeoX.
enum class Residual { sequential, parallel };

// full: all keys. sliding_window: the nearest keys. longformer: a window on both sides, and global
// tokens with separate projections. `windows` gives the window of each layer.
enum class AttentionSpan { full, sliding_window, longformer };

// The attention projections that have a bias.
enum class AttentionBias { none, qkv, out, all };

enum class FfnKind { plain, gated };

// Shared embedding matrices: target and output, source and target, or all three.
enum class Tying { none, target_output, source_target, all };

enum class EmbeddingScale { none, sqrt_width };

enum class Head {
  none,  // hidden states
  language_model,
  masked_lm,
  classifier,
  regression,
  token_classifier,
  embedding,
};

// Weight initialisation. xavier: as in Vaswani et al. normal: σ = 0.02, BERT. gpt2: σ = 0.02, scaled
// by 1/√(2 layers) for projections into the residual stream. t5: 1/√fan_in. by_family: xavier,
// normal and gpt2 for encoder_decoder, encoder_only and decoder_only.
enum class Initialisation { by_family, xavier, normal, gpt2, t5 };

enum class Side { encoder, decoder };

// One stack of a model. Made by ModelConfig::stack(), which is the only place that knows what a 0
// in ModelConfig stands for.
struct StackConfig {
  const char* name = "";  // "encoder" or "decoder": the first part of its weights' names
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int64_t ffn = 0;
  bool causal = false;
  bool cross_attention = false;
  std::vector<int64_t> windows{};  // a pattern over the layers, repeated; empty: full attention

  int64_t query_width() const { return int64_t{heads} * head_dim; }
  int64_t key_width() const { return int64_t{kv_heads} * head_dim; }
  // Keys that a query of this layer sees, its own among them; 0: all.
  int64_t window(size_t layer) const {
    return windows.empty() ? 0 : windows[layer % windows.size()];
  }
};

struct ModelConfig {
  Family family = Family::encoder_decoder;

  // Sizes. For a decoder_… field, 0 means the encoder's value.
  int64_t vocabulary = 32000;
  int64_t target_vocabulary = 0;
  int64_t width = 512;
  int encoder_layers = 6;
  int decoder_layers = 6;
  int heads = 8;
  int decoder_heads = 0;
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: width / heads
  int64_t ffn = 2048;
  int64_t decoder_ffn = 0;

  // Positions.
  Position position = Position::sinusoidal;
  int64_t max_positions = 512;  // maximum sequence length; a hard limit for position tables only
  SinusoidLayout sinusoid_layout = SinusoidLayout::interleaved;
  int position_offset = 0;  // rows of the table before position 0
  float rope_base = 10000;
  float rope_fraction = 1;  // fraction of head_dim that is rotated
  RopeLayout rope_layout = RopeLayout::half;
  RopeScaling rope_scaling = RopeScaling::none;
  float rope_factor = 1;
  float rope_low_frequency_factor = 1;   // llama3
  float rope_high_frequency_factor = 4;  // llama3
  int64_t rope_original_positions = 0;   // of scalings that need it (ops/positions.h)
  int t5_buckets = 32;
  int t5_max_distance = 128;

  // Norms.
  NormKind norm = NormKind::layer_norm;
  NormPlace norm_place = NormPlace::post;
  bool final_norm = false;
  bool embedding_norm = false;
  float norm_eps = 1e-5f;
  float norm_offset = 0;  // added to γ: 1 for Gemma
  bool norm_bias = true;  // β; layer_norm only

  // Attention.
  AttentionSpan attention = AttentionSpan::full;
  std::vector<int64_t> windows{};  // a pattern over the layers, repeated; 0: full attention
  float attention_scale = 0;       // 0: 1/√head_dim
  float attention_soft_cap = 0;    // 0: none
  AttentionBias attention_bias = AttentionBias::all;
  Residual residual = Residual::sequential;

  // Feed-forward.
  Activation activation = Activation::relu;
  FfnKind ffn_kind = FfnKind::plain;
  bool ffn_bias = true;

  // Embeddings and output.
  Tying tying = Tying::all;
  EmbeddingScale embedding_scale = EmbeddingScale::sqrt_width;
  int token_types = 0;
  bool output_bias = false;
  float logits_scale = 1;
  float logits_soft_cap = 0;

  // The head.
  Head head = Head::language_model;
  int labels = 0;
  Pooling pooling = Pooling::first;
  // Activation of the layer before the output. none: no such layer; masked_lm, which always has
  // one, then uses `activation`.
  Activation head_activation = Activation::none;
  // encoder_only: BERT's pooler; with masked_lm also the next-sentence head.
  bool pooler = false;

  // Dropout, in training.
  float dropout = 0.1f;  // of each residual branch
  float attention_dropout = 0;
  float activation_dropout = 0;
  float embedding_dropout = 0.1f;

  // As an input, the embedding of pad_id gets no gradient (PyTorch's padding_idx). It matters where
  // the decoder starts with that id.
  bool pad_frozen = false;

  Initialisation initialisation = Initialisation::by_family;

  // Special ids; -1: none.
  int pad_id = -1;
  int bos_id = -1;
  int eos_id = -1;
  int decoder_start_id = -1;

  bool operator==(const ModelConfig&) const = default;

  bool has_encoder() const { return family != Family::decoder_only; }
  bool has_decoder() const { return family != Family::encoder_only; }
  bool has_both() const { return family == Family::encoder_decoder; }
  // The stack that reads the source, or the only sequence that there is.
  Side first_side() const { return has_encoder() ? Side::encoder : Side::decoder; }

  // The values that a 0 stands for.
  StackConfig stack(Side side) const;
  int64_t output_vocabulary() const { return target_vocabulary ? target_vocabulary : vocabulary; }

  RopeFormula rope_formula(int of_head_dim) const {
    return {.rotary_dim = static_cast<int>(static_cast<float>(of_head_dim) * rope_fraction) / 2 * 2,
            .base = rope_base,
            .scaling = rope_scaling,
            .factor = rope_factor,
            .low_frequency_factor = rope_low_frequency_factor,
            .high_frequency_factor = rope_high_frequency_factor,
            .original_positions = rope_original_positions};
  }
  // The bias of a stack's self-attention, without its weights.
  RelativeBias relative_bias(bool causal) const {
    return {.kind = relative_bias_kind(position),
            .t5_rule = {t5_buckets, t5_max_distance, /*bidirectional=*/!causal}};
  }
  bool has_relative_bias() const { return relative_bias_kind(position) != RelativeBiasKind::none; }
};

// Calls visit(name, field, help) for every field.
template <class Config, class Visitor>
void describe(Config& c, Visitor&& visit);

// A sanity limit: a config with more layers is invalid or malicious.
inline constexpr int kMostLayers = 10000;

// All problems of a config, each as a sentence that names the field; empty: valid.
std::vector<std::string> validate(const ModelConfig& config);
// Throws invalid_argument with all problems when there are any.
void check(const ModelConfig& config, const std::string& where);

std::string to_json(const ModelConfig& config);
// Starts from `defaults`. Throws one error that lists all unknown keys and values, with suggestions.
ModelConfig config_from_json(const std::string& json, const ModelConfig& defaults,
                             const std::string& where);

}  // namespace heed

#include "model/config_fields.h"  // kEnumNames and describe()
