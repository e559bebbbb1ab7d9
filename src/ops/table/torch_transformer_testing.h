// Test support: torch.nn.Transformer written by hand on the ops, as a model of one's own would be.
//
// It stands in for model/ in the tests of this folder: real weights and gradients to compare with,
// and a whole training step to count allocations and threads in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/rows/optimizer.h"
#include "ops/ops.h"

namespace heed {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> data;
};
// A safetensors file of f32 tensors. For files we made ourselves: hardly checked.
std::map<std::string, Tensor> read_tensors(const std::string& path);

// Sequences of ids as a packed batch that owns its arrays.
class PackedIds {
 public:
  explicit PackedIds(const std::vector<std::vector<int32_t>>& sequences);
  Batch batch() const { return {tokens_, positions_, {}, offsets_}; }
  const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  std::vector<int32_t> tokens_, positions_, offsets_{0};
};

class TorchTransformer {
 public:
  struct Config {
    int64_t width = 32, ffn = 64, vocabulary = 60;
    int heads = 4, layers = 2;
    bool pre_norm = false;
    float dropout = 0, attention_dropout = 0;
  };

  // Weights by torch's names; a missing one is an error of the test.
  TorchTransformer(const Config& config, const std::map<std::string, Tensor>& weights);
  // Random weights, for tests that compare Heed with itself.
  static std::map<std::string, Tensor> random_weights(const Config& config, uint64_t seed);

  Var encode(Ctx& ctx, const Batch& source) const;  // → memory [source rows, width]
  Var decode(Ctx& ctx, const Batch& target, Var memory, const Batch& source) const;
  Var logits(Ctx& ctx, Var decoded) const;  // [target rows, vocabulary]
  LossSum loss(Ctx& ctx, const Batch& source, const Batch& target, std::span<const int32_t> labels,
               float label_smoothing) const;

  void begin_step();  // gradients count from zero again
  void adam(ThreadPool& pool, const kernels::AdamStep& step);

  const std::vector<float>& value(const std::string& name) const { return find(name).value; }
  const std::vector<float>& gradient(const std::string& name) const { return find(name).gradient; }
  std::vector<std::string> names() const;

 private:
  struct Parameter {
    int64_t rows, cols;
    std::vector<float> value, gradient, m, v;
  };
  struct Attention {
    Linear qkv, q, kv, out;  // q and kv are rows of qkv, for cross-attention
  };
  struct Layer {
    Attention self, cross;
    Linear ffn1, ffn2;
    Norm norms[3];
  };

  const Parameter& find(const std::string& name) const;
  Weight weight(const std::string& name, int64_t first_row = 0, int64_t rows = -1);
  Linear linear_layer(const std::string& weight_name, const std::string& bias_name,
                      int64_t first_row = 0, int64_t rows = -1);
  Attention attention_layer(const std::string& prefix, bool cross);
  Norm norm_layer(const std::string& prefix);

  template <class Branch>
  Var residual(Ctx& ctx, Var x, const Norm& norm, const Branch& branch) const;
  Var self_attention(Ctx& ctx, Var x, const Attention& a, const Batch& batch, bool causal) const;
  Var cross_attention(Ctx& ctx, Var x, Var memory, const Attention& a, const Batch& target,
                      const Batch& source) const;
  Var feed_forward(Ctx& ctx, Var x, const Layer& layer) const;
  AttentionOptions attention_options(bool causal) const;

  Config config_;
  std::map<std::string, Parameter> parameters_;
  std::vector<std::unique_ptr<WeightGradient>> gradients_;
  std::vector<float> sinusoids_;
  Embedding embedding_;
  Linear output_;
  std::vector<Layer> encoder_, decoder_;
  Norm encoder_norm_, decoder_norm_;
};

}  // namespace heed
