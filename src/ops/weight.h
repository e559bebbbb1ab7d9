// Weights as the ops see them: numbers to read and, in training, a place for the gradient.
// In inference a matrix may be held in fewer bytes instead (kernels/matmul/packed_weight.h).
#pragma once

#include "kernels/matmul/packed_weight.h"
#include "ops/mat.h"

namespace heed {

class GradientLender;

// The gradient of one weight. The first op that adds to it in a step writes instead, so nobody has
// to zero it; the owner clears `written` before each step and treats what stays unwritten as zero.
struct WeightGradient {
  Mat value;
  bool written = false;
  // How often backwards have asked for it, in runs that measure and in real ones. Whoever counts
  // from zero in a measuring run, and keeps that as planned, can tell when a real one is final.
  int arrived = 0, planned = 0;
  // Where memory comes from (gradient_lender.h), and which it is; null: it has its own.
  GradientLender* lender = nullptr;
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
