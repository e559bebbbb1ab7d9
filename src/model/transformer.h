// The Transformer: the one text of the model, for training and for inference, for all families.
//
//   embed → stack of blocks → head
//
// It reads like the paper. Every switch of ModelConfig acts in one place: positions at the
// embedding, on q and k, or inside attention; norms, dropout and residuals in residual(); windows
// and head counts in attention; the FFN's kind in feed_forward().
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

// Longformer's global tokens: marks for every row of a batch, and the marked rows by sequence.
struct GlobalTokens {
  GlobalTokens(const Batch& batch, std::span<const int32_t> marked_rows);

  std::vector<uint8_t> flags;    // [rows]
  std::vector<int32_t> rows;     // the marked ones, in order
  std::vector<int32_t> offsets;  // [sequences + 1], into `rows`
};

// Those of a model that nobody has told: for a Longformer that classifies, the first of each
// sequence, which its answer is read from. No others have any.
std::optional<GlobalTokens> default_global_tokens(const ModelConfig& config, const Batch& batch);

// A batch, and what only some models ask for. Borrowed until after backward.
struct ModelInput {
  Batch batch;
  const GlobalTokens* global_tokens = nullptr;
};

// Attention maps, when somebody wants to look: one entry a layer.
struct AttentionMap {
  std::string name;   // "encoder.0.self", "decoder.1.cross"
  Mat probabilities;  // [heads, queries, keys] of each sequence, as a single row
};
using AttentionMaps = std::vector<AttentionMap>;

// The rows that the output matrix multiplies, and that matrix: for losses over the vocabulary.
struct OutputRows {
  Var x;
  Linear output;
};

class Transformer {
 public:
  // Borrows both.
  Transformer(const ModelConfig& config, const Parameters& parameters);

  // Training with less memory: a layer keeps its input alone, and its backward first runs it again
  // (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). A third more work; every
  // bit of loss and gradients is the same, for dropout depends on nothing that ran before.
  void recompute_layers(bool on) { recompute_ = on; }

  // Hidden states of the encoder (encoder_only, encoder_decoder).  → [rows, width]
  Var encode(Ctx& ctx, const ModelInput& input, AttentionMaps* maps = nullptr) const;
  // Hidden states of the decoder (decoder_only; encoder_decoder with memory).  → [rows, width]
  Var decode(Ctx& ctx, const Batch& batch, AttentionMaps* maps = nullptr) const;
  Var decode(Ctx& ctx, const Batch& target, Var memory, const Batch& source,
             AttentionMaps* maps = nullptr) const;

  // The same with a cache (inference only). The batch holds new rows alone: any number for each
  // sequence, their positions going on from those in its tables, which already count them. Keys and
  // values of the rows are put into the cache; the result has the bits of a decode() of everything.
  Var decode(Ctx& ctx, const Batch& batch, const KvView& cache) const;
  // Only the hidden states of some rows, for whoever needs no others: of a prompt, the last one's
  // logits. The others end with their keys and values in the last layer.  → [wanted, width]
  Var decode(Ctx& ctx, const Batch& batch, const KvView& cache,
             std::span<const int32_t> wanted) const;
  // Before it, once for each source of an encoder_decoder model: the keys and values that
  // cross-attention reads. The tables are those of the source's sequences; beams share them.
  void cross_keys(Ctx& ctx, Var memory, const Batch& source, const KvView& cache) const;
  // How a cache for this model is laid out; models with a decoder.
  const KvLayout& kv_layout() const { return kv_layout_; }

  // The heads, from hidden states.
  Var logits(Ctx& ctx, Var hidden) const;  // language_model, masked_lm
  LossSum token_loss(Ctx& ctx, Var hidden, std::span<const int32_t> labels,
                     const CrossEntropyOptions& options) const;  // of those logits
  OutputRows output_rows(Ctx& ctx, Var hidden) const;            // for other losses of those logits
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
  struct Stack {
    std::string name;
    Embedding embedding;
    Norm embedding_norm, final_norm;
    std::vector<Layer> layers;
    int heads = 0;
    bool causal = false;
    T5Bias t5_bias;
    std::vector<float> alibi_slopes, rope_frequencies;
  };
  // What all layers of one pass share.
  struct Pass {
    const Stack& stack;
    const Batch& batch;
    const RopeTable* rope = nullptr;
    const GlobalTokens* global_tokens = nullptr;
    const Var* memory = nullptr;
    const Batch* source = nullptr;
    const KvView* cache = nullptr;
    AttentionMaps* maps = nullptr;
    const std::span<const int32_t>* wanted = nullptr;  // rows of the result; null: all of them
  };
  struct LayerAgain;  // a record of the tape

  Linear linear_layer(const std::string& name) const;
  Norm norm_layer(const std::string& name) const;
  Stack make_stack(const std::string& name, const std::string& embedding, int layers, int heads,
                   bool causal);
  bool leaves_rows_out(const Pass& pass, size_t layer) const;
  AttentionOptions attention_options(const Stack& stack) const;
  AttentionOptions self_options(const Stack& stack, size_t layer) const;

  Var run(Ctx& ctx, const Pass& pass) const;
  Var embed_tokens(Ctx& ctx, const Pass& pass) const;
  Var block(Ctx& ctx, const Pass& pass, size_t layer, Var x) const;
  Var forgetful_block(Ctx& ctx, const Pass& pass, size_t layer, Var x) const;
  template <class Branch>
  Var residual(Ctx& ctx, Var x, const Sublayer& norms, const Branch& branch) const;
  // A sub-layer ends with a product; `skip`, if not null, is added to it, after dropout.
  Var sublayer_output(Ctx& ctx, Var x, const Linear& layer, const Var* skip) const;
  Var self_attention(Ctx& ctx, const Pass& pass, size_t layer, Var x, const Var* skip) const;
  Var global_attention(Ctx& ctx, const Pass& pass, const Layer& layer, Var x, Var local) const;
  Var cross_attention(Ctx& ctx, const Pass& pass, size_t layer, Var x, const Var* skip) const;
  std::array<Var, 2> cross_key_values(Ctx& ctx, const Layer& layer, Var memory) const;
  Var feed_forward(Ctx& ctx, const Layer& layer, Var x, const Var* skip) const;
  Linear output_layer() const;
  Var before_output(Ctx& ctx, Var hidden) const;
  Mat* new_map(const Pass& pass, size_t layer, const char* kind) const;

  const ModelConfig& c_;
  const Parameters& p_;
  std::vector<float> sinusoids_;
  Stack encoder_, decoder_;
  bool has_encoder_, has_decoder_;
  bool recompute_ = false;
  KvLayout kv_layout_;
};

}  // namespace heed
