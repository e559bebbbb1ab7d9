// What a model is: one field, and where there are kinds of it one enum, for each thing that the
// Transformer literature swaps. Every model that Heed knows is a point in this space.
//
//   ModelConfig c = preset("transformer-base");   // model/presets.h
//   c.position = Position::rope;
//   for (const std::string& problem : validate(c)) …
//
// describe() lists each field once; JSON, flags, documentation and equality are made from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "kernels/rows/activation.h"
#include "ops/ops.h"

namespace heed {

enum class Family { encoder_decoder, encoder_only, decoder_only };

enum class Position { none, sinusoidal, learned, rope, t5_bias, alibi };

// pre: x + f(norm(x)). post: norm(x + f(x)), the paper. both: x + norm(f(norm(x))), Gemma 2.
enum class NormPlace { pre, post, both };

// sequential: attention, then FFN. parallel: x + attention(x) + ffn(x), GPT-NeoX.
enum class Residual { sequential, parallel };

// full: every key. sliding_window: the nearest ones. longformer: a window on both sides, and global
// tokens with projections of their own. The pattern of windows says which layers.
enum class AttentionSpan { full, sliding_window, longformer };

// Which of attention's projections have a bias.
enum class AttentionBias { none, qkv, out, all };

enum class FfnKind { plain, gated };

// Which embedding matrices are one: the target's with the output, source's with target's, or all.
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

// How weights start. xavier: the paper. normal: 0.02, BERT. gpt2: 0.02, less for what adds to the
// residual stream. t5: one over the root of what a product sums over. by_family: xavier, normal and
// gpt2 for encoder_decoder, encoder_only and decoder_only.
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

  // Sizes. A decoder_… of 0 means: as the encoder's.
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
  int64_t max_positions = 512;  // the longest sequence; only `learned` cannot go beyond
  SinusoidLayout sinusoid_layout = SinusoidLayout::interleaved;
  int position_offset = 0;  // rows of the table before position 0
  float rope_base = 10000;
  float rope_fraction = 1;  // of head_dim that is turned
  RopeLayout rope_layout = RopeLayout::half;
  RopeScaling rope_scaling = RopeScaling::none;
  float rope_factor = 1;
  float rope_low_frequency_factor = 1;   // llama3
  float rope_high_frequency_factor = 4;  // llama3
  int64_t rope_original_positions = 0;   // llama3
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
  std::vector<int64_t> windows{};  // a pattern over the layers, repeated; 0: that layer sees all
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
  // Of the layer before the output. none: no layer; for masked_lm, which has one always: as the
  // feed-forward layer's.
  Activation head_activation = Activation::none;
  // encoder_only: BERT's pooled first token; of masked_lm with the next-sentence answer on it.
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

  // Ids with a meaning; -1: there is none.
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
};

// Calls visit(name, field, help) for every field.
template <class Config, class Visitor>
void describe(Config& c, Visitor&& visit);

// No model is deeper; a config that says so is a mistake or an attack.
inline constexpr int kMostLayers = 10000;

// Everything that is wrong with a config, each as a sentence that names the field; empty: fine.
std::vector<std::string> validate(const ModelConfig& config);
// Throws invalid_argument with all problems when there are any.
void check(const ModelConfig& config, const std::string& where);

std::string to_json(const ModelConfig& config);
// Starts from `defaults`; unknown keys and values are errors with a suggestion, all in one.
ModelConfig config_from_json(const std::string& json, const ModelConfig& defaults,
                             const std::string& where);

}  // namespace heed

#include "model/config_fields.h"  // kEnumNames and describe()
