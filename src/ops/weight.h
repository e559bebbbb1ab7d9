// Weights as the ops see them: numbers to read and, in training, a place for the gradient.
// In inference a matrix may be held in fewer bytes instead (kernels/matmul/packed_weight.h).
#pragma once

#include "kernels/matmul/packed_weight.h"
#include "ops/mat.h"

namespace heed {

class GradientPool;

// The gradient of one weight. The first contribution of a step writes instead of adding, so it is
// never zeroed; the owner clears `written` before each step and treats an unwritten one as zero.
struct WeightGradient {
  Mat value;
  bool written = false;
  // Contributions so far, counted in dry runs and in real ones. The count of a dry run, kept as
  // `planned`, tells a real run when the gradient is final.
  int arrived = 0, planned = 0;
  // The pool that the buffer is from (gradient_pool.h) and its index there; null: not pooled.
  GradientPool* pool = nullptr;
  int block = -1;
};

struct Weight {
  ConstMat value;
  WeightGradient* gradient = nullptr;  // null: frozen, or inference
  // The numbers of a matrix [out, in] in fewer bytes; `value` then has its shape and no data.
  kernels::PackedWeight packed{};

  explicit operator bool() const { return value.cols > 0; }
};

struct Linear {
  Weight weight;  // [out, in]
  Weight bias{};  // [1, out]; empty: none

  int64_t in() const { return weight.value.cols; }
  int64_t out() const { return weight.value.rows; }
};

enum class NormKind { layer_norm, rms_norm };

struct Norm {
  NormKind kind = NormKind::layer_norm;
  Weight gamma;   // [1, width]
  Weight beta{};  // layer_norm only; empty: none
  float eps = 1e-5f;
  float gamma_offset = 0;  // rms_norm only: Gemma stores γ - 1
};

}  // namespace heed
