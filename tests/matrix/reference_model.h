// A second implementation of the Transformer, in double precision and without a tape: the reference
// of the matrix test for outputs and, by finite differences, for gradients.
#pragma once

#include <map>
#include <string>

#include "model/network.h"
#include "ops/table/op_reference.h"
#include "sample.h"

namespace heed::matrix {

class ReferenceModel {
 public:
  using Matrix = reference::Matrix;

  // Copies the weights; later changes of the model are not seen.
  ReferenceModel(const ModelConfig& config, const Parameters& parameters);

  // Logits, classifier scores or sentence embeddings.
  Matrix output(const Sample& sample) const;
  // The sum that Sample::loss() gives.
  double loss(const Sample& sample) const;

  Matrix& weight(const std::string& name) { return weights_.at(name); }

 private:
  struct Side {
    std::string name, embedding;
    int layers, heads;
    bool causal;
  };
  // Input of one stack.
  struct Text {
    const PackedBatch& packed;
    const GlobalTokens* global = nullptr;
    const Matrix* memory = nullptr;
    const PackedBatch* source = nullptr;
  };

  const Matrix* find(const std::string& name) const;
  Matrix linear(const Matrix& x, const std::string& name) const;
  Matrix norm(const Matrix& x, const std::string& name) const;
  Matrix embed(const Side& side, const PackedBatch& packed) const;
  Matrix rotated(const Matrix& x, const PackedBatch& packed, int heads, int head_dim) const;
  AttentionOptions attention_options(const Side& side) const;
  Matrix self_attention(const Matrix& x, const Side& side, int layer, const Text& text) const;
  Matrix cross_attention(const Matrix& x, const Side& side, int layer, const Text& text) const;
  Matrix feed_forward(const Matrix& x, const std::string& name) const;
  Matrix stack(const Side& side, const Text& text) const;
  Matrix hidden(const Sample& sample) const;

  const ModelConfig& c_;
  std::map<std::string, Matrix> weights_;
  // Input embeddings of the id whose row gets no gradient: these stay when the weight is moved.
  std::map<std::string, Matrix> frozen_;
};

}  // namespace heed::matrix
