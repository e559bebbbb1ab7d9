// The Transformer: one forward pass for training, prefill and decode, and for all families.
//
//   embed → stack of blocks → head
//
//   Var hidden = transformer.hidden(ctx, {.source = source.batch(), .target = target.batch()});
//   Var logits = transformer.logits(ctx, hidden);
//
// Every switch of ModelConfig acts in one place: positions at the embedding, on q and k, or inside
// attention; norms, dropout and residuals in residual(); windows and head counts in attention; the
// FFN's kind in feed_forward().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/kv_layout.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace heed {

// Longformer's global tokens: a flag for every row of a batch, and the flagged rows by sequence.
struct GlobalTokens {
  GlobalTokens(const Batch& batch, std::span<const int32_t> marked_rows);

  std::vector<uint8_t> flags;    // [rows]
  std::vector<int32_t> rows;     // the marked ones, in order
  std::vector<int32_t> offsets;  // [sequences + 1], into `rows`
};

// A Longformer classifier or regressor attends globally from the first token of each sequence, the
// one that its head reads (Beltagy et al. 2020, §3.1). All other models: nullopt.
std::optional<GlobalTokens> default_global_tokens(const ModelConfig& config, const Batch& batch);

// Attention probabilities, one entry for each layer.
struct AttentionMap {
  std::string name;   // "encoder.0.self", "decoder.1.cross"
  Mat probabilities;  // [heads, queries, keys] of each sequence, as a single row
};
using AttentionMaps = std::vector<AttentionMap>;

// What one forward pass reads, for all families. Everything is borrowed until after backward.
struct ModelInput {
  Batch source{};  // the sequences; in an encoder_decoder model, the encoder's input
  Batch target{};  // encoder_decoder: the decoder's input; without rows the encoder runs alone
  const GlobalTokens* global_tokens = nullptr;  // Longformer; null: default_global_tokens()
  // Inference with a KV cache; see decode().
  const KvView* cache = nullptr;
  // Rows of the last stack whose hidden states are returned; nullopt: all.
  std::optional<std::span<const int32_t>> output_rows{};
  // Optional outputs.
  AttentionMaps* encoder_maps = nullptr;
  AttentionMaps* decoder_maps = nullptr;
  Var* encoder_hidden = nullptr;
};

// The output projection and its input: for losses that are fused with it.
struct OutputProjection {
  Var x;
  Linear output;
};

class Transformer {
 public:
  // Borrows both.
  Transformer(const ModelConfig& config, const Parameters& parameters);

  // Training with less memory: each layer is a checkpoint (ops/checkpoint.h). A third more work; loss
  // and gradients have the same bits.
  void set_activation_checkpointing(bool on) { checkpointing_ = on; }
  bool activation_checkpointing() const { return checkpointing_; }

  // Runs the encoder, the decoder or both: the hidden states of the last stack.
  // → [rows or output_rows, width]
  Var hidden(Ctx& ctx, const ModelInput& input) const;

  // Inference with a KV cache. `rows` are new ones only: any number for each sequence, with
  // positions that follow those in its tables, which already count them. K and V of the rows are
  // written to the cache. The result has the same bits as hidden() of the whole sequences.
  // With output_rows, the last layer computes only the K and V of other rows.
  Var decode(Ctx& ctx, const Batch& rows, const KvView& cache,
             std::optional<std::span<const int32_t>> output_rows = {}) const;
  // encoder_decoder, once for each source, before decode(): runs the encoder and writes the K and V
  // of cross-attention to the cache. The tables are those of the source's sequences; all beams of a
  // sequence share them.
  void cache_source(Ctx& ctx, const Batch& source, const KvView& cache) const;
  // The KV cache layout of a model with a decoder.
  const KvLayout& kv_layout() const { return kv_layout_; }

  // The heads, from hidden states.
  Var logits(Ctx& ctx, Var hidden) const;  // language_model, masked_lm
  LossSum token_loss(Ctx& ctx, Var hidden, std::span<const int32_t> labels,
                     const CrossEntropyOptions& options) const;    // of those logits
  OutputProjection output_projection(Ctx& ctx, Var hidden) const;  // for other losses of them
  Var pooled(Ctx& ctx, Var hidden, const Batch& batch) const;  // BERT's pooler  → [sequences, …]
  // masked_lm with a pooler: whether the second text follows the first.  → [sequences, 2]
  Var next_sentence(Ctx& ctx, Var hidden, const Batch& batch) const;
  Var classify(Ctx& ctx, Var hidden, const Batch& batch) const;  // → [sequences or rows, labels]
  Var sentence(Ctx& ctx, Var hidden, const Batch& batch) const;  // → [sequences, width]

 private:
  struct Attention {
    Linear qkv, q, kv, out;
  };
  struct Sublayer {
    Norm norm, post_norm;
  };
  struct Layer {
    Attention self, cross;
    Linear global_qkv;
    Linear ffn_in, ffn_out;
    Sublayer self_norms, cross_norms, ffn_norms;
  };
  // The weights that turn hidden states into answers; those that the config's head does not have
  // are empty.
  struct Heads {
    Linear output;    // language_model, masked_lm; may be the embedding (tied)
    Linear dense;     // the layer before the output
    Norm dense_norm;  // masked_lm
    Activation dense_activation = Activation::none;
    Linear pooler, next_sentence;  // BERT
    Linear labels;                 // classifier, regression, token_classifier
  };
  struct Stack {
    StackConfig config;
    AttentionOptions attention;  // what all attention of the stack has in common
    Embedding embedding;
    Norm embedding_norm, final_norm;
    std::vector<Layer> layers;
    RelativeBias bias;
    RopeAngles rope;
  };
  // What all layers of a forward pass through one stack share. A checkpoint keeps a copy, so it
  // points only to what outlives backward.
  struct Pass {
    const Stack& stack;
    Batch batch;
    std::optional<RopeTable> rope{};
    const GlobalTokens* global_tokens = nullptr;
    std::optional<Var> memory{};  // the encoder's hidden states …
    Batch source{};               // … and its rows
    const KvView* cache = nullptr;
    AttentionMaps* maps = nullptr;
    std::optional<std::span<const int32_t>> output_rows{};  // nullopt: all
  };

  Linear linear_layer(const std::string& name) const;
  Norm norm_layer(const std::string& name) const;
  Stack make_stack(Side side);
  Heads make_heads() const;
  bool prunes_rows(const Pass& pass, size_t layer) const;
  AttentionOptions self_options(const Stack& stack, size_t layer) const;

  Var run(Ctx& ctx, Pass pass) const;
  Var embed_tokens(Ctx& ctx, const Pass& pass) const;
  Var block(Ctx& ctx, const Pass& pass, size_t layer, Var x) const;
  Var checkpointed_block(Ctx& ctx, const Pass& pass, size_t layer, Var x) const;
  template <class Branch>
  Var residual(Ctx& ctx, Var x, const Sublayer& norms, const Branch& branch) const;
  // A sub-layer's last matmul; `skip`, if not null, is added after dropout, in the epilogue.
  Var sublayer_output(Ctx& ctx, Var x, const Linear& layer, const Var* skip) const;
  Var self_attention(Ctx& ctx, const Pass& pass, size_t layer, Var x, const Var* skip) const;
  Var global_attention(Ctx& ctx, const Pass& pass, const Layer& layer, Var x, Var local) const;
  Var cross_attention(Ctx& ctx, const Pass& pass, size_t layer, Var x, const Var* skip) const;
  std::array<Var, 2> cross_key_values(Ctx& ctx, const Layer& layer, Var memory) const;
  Var feed_forward(Ctx& ctx, const Layer& layer, Var x, const Var* skip) const;
  Var before_output(Ctx& ctx, Var hidden) const;
  Mat* new_map(const Pass& pass, size_t layer, const char* kind) const;

  const ModelConfig& c_;
  const Parameters& p_;
  std::vector<float> sinusoids_;
  Stack encoder_, decoder_;
  Heads heads_;
  bool checkpointing_ = false;
  KvLayout kv_layout_;
};

}  // namespace heed
