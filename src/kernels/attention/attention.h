// Attention over packed rows: softmax(scale · Q Kᵀ + bias) V for each sequence and head.
//
// Tiled with an online softmax (Dao et al. 2022): no buffer of [T, T] exists. Forward keeps the
// log-sum-exp of each row; backward recomputes the probabilities from it. A row's result depends
// only on its own query and the keys it sees: not on the batch, the tile it falls into, the number
// of threads, or whether later keys exist (so decode steps give the bits of prefill), as long as all
// values are finite.
#pragma once

#include <cstdint>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/attention/kv_blocks.h"
#include "kernels/rows/dropout.h"

namespace heed::kernels {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

// Floats beyond the last relative distance in use that a bias table must have, on both sides.
inline constexpr int64_t kBiasPadding = 16;
// Distances that are read (and not used) before a window's first: a tile of queries shares its
// keys.
inline constexpr int64_t kBiasReach = 64;

// Arguments of forward and backward. Rows of one sequence are consecutive; the heads of a row are
// side by side: head h of q is at column h * head_dim. Query head h reads key/value head
// h / (heads / kv_heads).
struct Attention {
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 0;

  int64_t sequences = 0;
  const int32_t* query_offsets = nullptr;  // [sequences + 1]: sequence s owns query rows [s], [s+1)
  const int32_t* key_offsets = nullptr;    // [sequences + 1], likewise for keys and values

  const float* q = nullptr;  // [query rows, heads * head_dim], rows q_stride apart
  const float* k = nullptr;  // [key rows, kv_heads * head_dim]
  const float* v = nullptr;  // [key rows, kv_heads * head_dim]
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  // K and V in the blocks of a KV cache, instead of k, v and key_offsets. Same bits. Forward only; no
  // global tokens, dropout, log-sum-exp or probabilities.
  const KvBlocks* blocks = nullptr;

  float scale = 1;
  float soft_cap = 0;  // > 0: scores become soft_cap · tanh(score / soft_cap), before the bias

  // The query at position i sees the keys i - before … i + after. Causal: after = 0. A window of 4
  // (itself and 3 before): before = 3.
  int64_t before = kUnlimited;
  int64_t after = kUnlimited;
  // Global tokens see, and are seen, beyond the window (`before`, and `after` unless it is 0).
  const uint8_t* global_queries = nullptr;  // [query rows]
  const uint8_t* global_keys = nullptr;     // [key rows]

  // Added to the score of (query i, key j) in head h: bias[h * bias_stride + (j - i) +
  // bias_center]. Readable for kBiasPadding floats beyond the distances that occur.
  const float* bias = nullptr;
  int64_t bias_stride = 0, bias_center = 0;

  Dropout dropout{};  // of the probabilities

  // Of sequence s.
  int64_t queries(int64_t s) const { return query_offsets[s + 1] - query_offsets[s]; }
  int64_t keys(int64_t s) const {
    return blocks ? blocks->tables[s].keys : key_offsets[s + 1] - key_offsets[s];
  }
  // Position of the first query among the keys. With a KV cache the last query is at the last key.
  int64_t first_position(int64_t s) const { return blocks ? keys(s) - queries(s) : 0; }
};

struct AttentionOutput {
  float* out = nullptr;  // [query rows, heads * head_dim], rows out_stride apart
  int64_t out_stride = 0;
  float* log_sum_exp = nullptr;  // [query rows, heads]; may be null when no backward follows
  // Optional: the probabilities (before dropout), [heads, queries, keys] for sequence s from
  // probabilities + probability_offsets[s].
  float* probabilities = nullptr;
  const int64_t* probability_offsets = nullptr;
};

struct AttentionGradients {
  const float* out = nullptr;  // forward's results
  const float* log_sum_exp = nullptr;
  const float* d_out = nullptr;
  int64_t out_stride = 0, d_out_stride = 0;
  bool accumulate_q = false, accumulate_k = false, accumulate_v = false;  // add instead of write
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  int64_t dq_stride = 0, dk_stride = 0, dv_stride = 0;
  float* d_bias = nullptr;  // optional; layout of bias, always added to
};

// Floats of scratch that a call needs for each thread of the pool.
int64_t attention_scratch_floats(const Attention& attention, bool backward);

// `scratch`: pool.threads() × attention_scratch_floats(…), aligned to 64 bytes.
void attention_forward(ThreadPool& pool, const Attention& attention, const AttentionOutput& output,
                       float* scratch);
void attention_backward(ThreadPool& pool, const Attention& attention,
                        const AttentionGradients& gradients, float* scratch);

}  // namespace heed::kernels
