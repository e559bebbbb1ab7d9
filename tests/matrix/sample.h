// Inputs and labels for a model of any task, and the model run on them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed::matrix {

struct Sample {
  PackedBatch source, target;
  std::optional<GlobalTokens> global;
  std::vector<int32_t> labels;  // of rows or sequences; empty for regression and
  std::vector<float> values;    // embeddings, which use these

  bool has_values() const { return !values.empty(); }
  const GlobalTokens* global_tokens() const { return global ? &*global : nullptr; }
};

// Random ids, token types and labels, with sequences of these lengths.
Sample random_sample(const ModelConfig& config, const std::vector<int>& lengths, uint64_t seed);
// Sequence s of a sample alone.
Sample part_of(const Sample& sample, const ModelConfig& config, size_t s);

// A task to learn. Models with a vocabulary copy the text (masked models and taggers predict each
// token, decoders repeat what precedes the separator). Others predict the class that all tokens of
// the text belong to, as a label, a number or a vector.
Sample lesson(const ModelConfig& config, uint64_t seed, uint32_t step);

// Output of the model: logits, classifier scores or sentence embeddings.
Var output(Ctx& ctx, const Network& model, const Sample& sample);
// The loss of the sample, a sum over rows; with a tape also its gradients times `gradient_scale`.
LossSum loss(Ctx& ctx, const Network& model, const Sample& sample, float gradient_scale = 1);

}  // namespace heed::matrix
