// Factories of the table's cases, one for each op. Their options are plain structs in which every
// field has a default, so that a line of the table says only what is special about it.
#pragma once

#include <string>
#include <vector>

#include "ops/table/op_table.h"

namespace heed::op_cases {

struct EmbedCase {
  int64_t rows = 1, width = 8, vocabulary = 11;
  float scale = 1;
  enum class Positions { none, learned, sinusoidal, sinusoidal_half } positions = Positions::none;
  int position_offset = 0;
  int64_t token_types = 0;
  float dropout = 0;
  int64_t first_row = 0;  // of a longer batch, whose ids go on as if it were all here
};
OpCase embed_case(const EmbedCase& options);

struct LinearCase {
  int64_t rows = 1, in = 8, out = 8;
  bool bias = false;
  Activation activation = Activation::none;
  bool slice = false;  // the input is the middle third of a split matrix
  float dropout = 0;
};
OpCase linear_case(const LinearCase& options);

struct NormCase {
  NormKind kind = NormKind::layer_norm;
  int64_t rows = 1, width = 8;
  bool beta = false;
  float gamma_offset = 0;
  float eps = 1e-5f;
};
OpCase norm_case(const NormCase& options);

struct ElementwiseCase {
  int64_t rows = 1, width = 8;
  float dropout = 0;
  float factor = 1;
};
OpCase residual_add_case(const ElementwiseCase& options);
OpCase dropout_case(const ElementwiseCase& options);
OpCase scale_case(const ElementwiseCase& options);

struct GatedCase {
  int64_t rows = 1, width = 8;
  Activation activation = Activation::silu;
  bool one_matrix = false;  // gate and up are the halves of one matrix
};
OpCase gated_case(const GatedCase& options);

struct SplitCase {
  int64_t rows = 1;
  std::vector<int64_t> widths = {4, 4};  // two or three
  bool skip_middle = false;              // the second slice is used by nobody
  bool after_tanh = false;  // whose backward needs the value that the slices are then scaled in
};
OpCase split_case(const SplitCase& options);

struct TakeRowsCase {
  int64_t rows = 1, width = 8;
  std::vector<int32_t> indices{};
};
OpCase take_rows_case(const TakeRowsCase& options);
OpCase put_rows_case(const TakeRowsCase& options);  // indices: no index twice

struct RopeCase {
  int64_t rows = 1;
  int heads = 1, head_dim = 8, rotary_dim = 8;
  RopeLayout layout = RopeLayout::half;
  float magnitude = 1;
  int32_t first_position = 0;
};
OpCase rope_case(const RopeCase& options);

struct AttentionCase {
  std::string variant{};
  std::vector<int32_t> queries{};  // length of each sequence
  std::vector<int32_t> keys{};     // likewise; empty: the same (self-attention)
  int heads = 2, kv_heads = 2, head_dim = 8;
  AttentionOptions options{};  // but for what is given here, and spans
  bool t5 = false;
  T5Buckets t5_rule{};
  bool alibi = false;
  std::vector<uint8_t> global_tokens{};
  bool probabilities = false;
  bool one_matrix = false;  // q, k and v are slices of one matrix
};
OpCase attention_case(const AttentionCase& options);

OpCase pool_case(const std::vector<int32_t>& lengths, int64_t width, Pooling pooling);

struct VocabularyCase {
  int64_t rows = 1, width = 8, vocabulary = 11;
  bool bias = false;
  CrossEntropyOptions options{};
  bool ignore_some = false;
  int64_t first_row = 0;  // of a longer batch, whose labels go on as if it were all here
};
OpCase vocabulary_cross_entropy_case(const VocabularyCase& options);

struct DistillationCase {
  int64_t rows = 1, width = 8, teacher_width = 8, vocabulary = 11;
  bool bias = false;
  DistillationOptions options{};
  int64_t first_row = 0;  // of a longer batch, as above
};
OpCase vocabulary_kl_divergence_case(const DistillationCase& options);

struct TwinCase {
  int64_t pairs = 1, width = 8, vocabulary = 11;
  bool bias = false;
  float divergence_weight = 1;
  CrossEntropyOptions options{};
  bool ignore_some = false;
};
OpCase vocabulary_twin_cross_entropy_case(const TwinCase& options);

struct ClassCase {
  int64_t rows = 1, classes = 5;
  CrossEntropyOptions options{};
  bool ignore_some = false;
};
OpCase cross_entropy_case(const ClassCase& options);

OpCase squared_error_case(int64_t rows, int64_t width, float gradient_scale);
OpCase cosine_distance_case(int64_t rows, int64_t width, float gradient_scale);

}  // namespace heed::op_cases
