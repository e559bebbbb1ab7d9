// The closed set of fused ops from which every model is written.
//
// Each takes a Ctx and returns its output in the Ctx's arena. With a tape it also records its
// backward, which is in the same .cc file. Rows are packed (ops/batch.h): only attention and pool
// have sequences. No result depends on the number of threads, and no row of a result on the other
// rows (for attention and pool: sequences) of the batch; a tape adds dropout and changes nothing
// else. Gradients depend on the batch, not on the number of threads.
//
// An op that works in place overwrites its input, which must have no other use.
//
// Wrong shapes are internal errors (HEED_CHECK); wrong ids and labels throw
// Error(invalid_argument).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/ignore_label.h"
#include "kernels/attention/kv_blocks.h"
#include "kernels/attention/rope.h"
#include "kernels/rows/activation.h"
#include "ops/batch.h"
#include "ops/ctx.h"
#include "ops/positions.h"
#include "ops/relative_bias.h"
#include "ops/weight.h"

namespace heed {

using kernels::Activation;
using kernels::KvBlocks;
using kernels::KvTable;
using kernels::RopeLayout;

// ---- embed.cc --------------------------------------------------------------------------------

struct Embedding {
  Weight tokens;            // [vocabulary, width]
  float scale = 1;          // of the token's row alone; the paper's √d_model
  Weight positions{};       // [positions, width], learned or sinusoidal (then without gradient)
  int position_offset = 0;  // added to the batch's positions (RoBERTa, BART)
  Weight token_types{};     // [types, width]
  // The row of this id gets no gradient from here (PyTorch's padding_idx); -1: every row does.
  int32_t frozen_id = -1;
  float dropout = 0;
};
// scale · tokens[id] + positions[position + offset] + token_types[type], then dropout.
// → [rows, width]
Var embed(Ctx& ctx, const Batch& batch, const Embedding& embedding);

// ---- linear.cc -------------------------------------------------------------------------------

// dropout(activation(x Wᵀ + b)), in one matrix where the derivative allows.  x [rows, in] →
// [rows, out]
Var linear(Ctx& ctx, Var x, const Linear& layer, Activation activation = Activation::none,
           float dropout = 0);

// residual + dropout(x Wᵀ + b): residual_add() of linear(), bit for bit; with a packed weight,
// which is inference, in one pass.  residual [rows, out], x [rows, in] → [rows, out]
Var linear_add(Ctx& ctx, Var residual, Var x, const Linear& layer, float dropout = 0);

// ---- norm.cc ---------------------------------------------------------------------------------

// Layer norm or RMS norm of each row.  x [rows, width] → same
Var norm(Ctx& ctx, Var x, const Norm& norm);
// The same of each head's columns alone, with one gamma [1, head_dim] for all heads: the q/k norm of
// Qwen 3. x may be a slice of a split matrix.  x [rows, heads · head_dim] → same
Var head_norm(Ctx& ctx, Var x, const Norm& norm, int heads);

// ---- residual.cc -----------------------------------------------------------------------------

// x + dropout(branch), in the memory of branch where no backward needs that.  → [rows, width]
Var residual_add(Ctx& ctx, Var x, Var branch, float dropout = 0);
// dropout(x), in place.
Var dropout(Ctx& ctx, Var x, float p);

// ---- gated.cc --------------------------------------------------------------------------------

// activation(gate) ∘ up: SwiGLU with silu, GEGLU with gelu.  [rows, width] both → same
Var gated(Ctx& ctx, Var gate, Var up, Activation activation);

// ---- views.cc --------------------------------------------------------------------------------

// Splits a matrix into column slices that share its memory: q, k, v of one matmul. Afterwards use the
// slices and not x.
template <size_t n>
std::array<Var, n> split(Ctx& ctx, Var x, const std::array<int64_t, n>& widths);
// factor · x, in place.
Var scale(Ctx& ctx, Var x, float factor);
// Rows of x by index, repeats allowed.  → [indices, width]
Var take_rows(Ctx& ctx, Var x, std::span<const int32_t> indices);
// x with the rows of these indices replaced, in place; no index twice.  rows [indices, width] → as x
Var put_rows(Ctx& ctx, Var x, Var rows, std::span<const int32_t> indices);

// ---- rope.cc ---------------------------------------------------------------------------------

// cos and sin of the angles of each row; computed once a batch for all layers.
struct RopeTable {
  Mat cos, sin;  // [rows, rotary_dim / 2]
};
RopeTable rope_table(Ctx& ctx, std::span<const int32_t> positions,
                     std::span<const float> frequencies, float magnitude = 1);

struct RopeShape {
  int heads = 1;
  int head_dim = 0;
  RopeLayout layout = RopeLayout::half;
};
// Rotates queries or keys [rows, heads · head_dim] by their positions, in place (a copy if their
// value is kept).
Var rope(Ctx& ctx, Var x, const RopeTable& table, const RopeShape& shape);

// ---- attention.cc ----------------------------------------------------------------------------

struct AttentionOptions {
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 0;
  float scale = 0;     // 0: 1/√head_dim
  float soft_cap = 0;  // > 0: scores become soft_cap · tanh(score / soft_cap)
  bool causal = false;
  // > 0: of the keys before it, a query sees the nearest window - 1 and itself; keys after it are
  // subject to `causal`. Symmetric: the nearest `window` on each side.
  int64_t window = 0;
  bool symmetric = false;
  // Self-attention only: [rows], 1 where the token sees and is seen beyond the window.
  std::span<const uint8_t> global_tokens{};
  RelativeBias bias{};  // added to the scores
  float dropout = 0;    // of the probabilities
  // Optional output, in the arena: the probabilities before dropout, [heads, queries, keys] of each
  // sequence, concatenated to a single row.
  Mat* probabilities = nullptr;
};

// softmax(scale · q kᵀ) v for each sequence and head.
// q [query rows, heads · head_dim], k and v [key rows, kv_heads · head_dim]; offsets as in Batch:
// the same for self-attention, two different ones for cross-attention.  → as q
struct AttentionInputs {
  Var q{}, k{}, v{};
  std::span<const int32_t> query_offsets{}, key_offsets{};
  // In inference: the KV cache, a table for each sequence. k and v, rows of the same positions as q,
  // are written to it first; attention is over all of it. Without k and v it is only read
  // (cross-attention). key_offsets and global tokens are not used then.
  const KvBlocks* cache = nullptr;
};
Var attention(Ctx& ctx, const AttentionInputs& inputs, const AttentionOptions& options);
// Writes k and v [rows, kv_heads · head_dim] to the KV cache, as the last positions of each
// sequence's table.
void store_keys(Ctx& ctx, ConstMat k, ConstMat v, std::span<const int32_t> offsets,
                const KvBlocks& cache);

// ---- pool.cc ---------------------------------------------------------------------------------

enum class Pooling { first, last, mean };
// One row for each sequence.  x [rows, width] → [sequences, width]
Var pool(Ctx& ctx, Var x, std::span<const int32_t> offsets, Pooling pooling);

// ---- vocabulary_loss.cc and losses.cc ----------------------------------------------------------
// A loss returns its sum and, with a tape, immediately adds `gradient_scale` times its gradient to
// its inputs; nothing is recorded. For the mean over n rows, gradient_scale is 1/n.

struct LossSum {
  double sum = 0;
  int64_t count = 0;  // rows that counted
};

struct CrossEntropyOptions {
  float label_smoothing = 0;
  float soft_cap = 0;  // of the logits
  float gradient_scale = 1;
};

// Cross-entropy of softmax(x Wᵀ + b), tile by tile of rows: logits for the whole batch never
// exist.  x [rows, width], labels [rows]
LossSum vocabulary_cross_entropy(Ctx& ctx, Var x, const Linear& output,
                                 std::span<const int32_t> labels,
                                 const CrossEntropyOptions& options);

// The teacher's logits, also computed one tile at a time.
struct Teacher {
  ConstMat x;  // [rows, teacher width]
  Linear output;
};
struct DistillationOptions {
  float temperature = 1;
  float gradient_scale = 1;
};
// T² · KL(teacher ‖ student) over the vocabulary (Hinton et al. 2015).
LossSum vocabulary_kl_divergence(Ctx& ctx, Var x, const Linear& output, const Teacher& teacher,
                                 const DistillationOptions& options);

// R-Drop (Wu et al. 2021): cross-entropy of two passes over the same text with different dropout, and
// the divergence of the two: Σ cross-entropy + divergence_weight · Σ ½ (KL(p ‖ q)
// + KL(q ‖ p)). x [2 · rows, width]: row r and row rows + r are a pair; labels [2 · rows], the same for
// both. No soft cap.
struct TwinLoss {
  LossSum labels;      // over both passes
  LossSum divergence;  // over the pairs
};
TwinLoss vocabulary_twin_cross_entropy(Ctx& ctx, Var x, const Linear& output,
                                       std::span<const int32_t> labels, float divergence_weight,
                                       const CrossEntropyOptions& options);

// Cross-entropy of given logits [rows, classes]: sequence and token classification.
LossSum cross_entropy(Ctx& ctx, Var logits, std::span<const int32_t> labels,
                      const CrossEntropyOptions& options);
// Σ over rows of the mean squared difference: regression.  x [rows, width], target likewise
LossSum squared_error(Ctx& ctx, Var x, ConstMat target, float gradient_scale);
// Σ over rows of 1 - cos(x, target): DistilBERT's hidden-state loss.
LossSum cosine_distance(Ctx& ctx, Var x, ConstMat target, float gradient_scale);

}  // namespace heed
