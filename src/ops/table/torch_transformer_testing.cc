#include "ops/table/torch_transformer_testing.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/philox.h"

namespace heed {

std::map<std::string, Tensor> read_tensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  HEED_CHECK(file.good(), "cannot read " + path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  uint64_t header_length = 0;
  std::memcpy(&header_length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_length));
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    HEED_CHECK(entry.at("dtype") == "F32", name + " is not F32");
    Tensor& t = tensors[name];
    t.shape = entry.at("shape").get<std::vector<int64_t>>();
    const auto begin = entry.at("data_offsets")[0].get<size_t>();
    const auto end = entry.at("data_offsets")[1].get<size_t>();
    t.data.resize((end - begin) / sizeof(float));
    std::memcpy(t.data.data(), bytes.data() + 8 + header_length + begin, end - begin);
  }
  return tensors;
}

PackedIds::PackedIds(const std::vector<std::vector<int32_t>>& sequences) {
  for (const auto& sequence : sequences) {
    for (size_t i = 0; i < sequence.size(); ++i) {
      tokens_.push_back(sequence[i]);
      positions_.push_back(static_cast<int32_t>(i));
    }
    offsets_.push_back(static_cast<int32_t>(tokens_.size()));
  }
}

TorchTransformer::TorchTransformer(const Config& config,
                                   const std::map<std::string, Tensor>& weights)
    : config_(config) {
  for (const auto& [name, tensor] : weights) {
    Parameter& p = parameters_[name];
    p.rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
    p.cols = tensor.shape.back();
    p.gradient.resize(tensor.data.size());
    p.m.resize(tensor.data.size());
    p.v.resize(tensor.data.size());
    p.value = tensor.data;
  }
  constexpr int64_t kPositions = 512;
  sinusoids_ = sinusoidal_table(kPositions, config.width, SinusoidLayout::interleaved);
  embedding_.tokens = weight("embedding.weight");
  embedding_.scale = std::sqrt(static_cast<float>(config.width));
  embedding_.positions = {ConstMat(sinusoids_.data(), kPositions, config.width)};
  embedding_.dropout = config.dropout;
  output_.weight = embedding_.tokens;  // tied: one matrix, one gradient
  for (const bool decoder : {false, true}) {
    const std::string stack = decoder ? "transformer.decoder." : "transformer.encoder.";
    for (int i = 0; i < config.layers; ++i) {
      const std::string prefix = stack + "layers." + std::to_string(i) + ".";
      Layer layer;
      layer.self = attention_layer(prefix + "self_attn.", false);
      if (decoder) layer.cross = attention_layer(prefix + "multihead_attn.", true);
      layer.ffn1 = linear_layer(prefix + "linear1.weight", prefix + "linear1.bias");
      layer.ffn2 = linear_layer(prefix + "linear2.weight", prefix + "linear2.bias");
      for (int n = 0; n < (decoder ? 3 : 2); ++n) {
        layer.norms[n] = norm_layer(prefix + "norm" + std::to_string(n + 1) + ".");
      }
      (decoder ? decoder_ : encoder_).push_back(layer);
    }
    if (config.pre_norm) {
      (decoder ? decoder_norm_ : encoder_norm_) = norm_layer(stack + "norm.");
    }
  }
}

std::map<std::string, Tensor> TorchTransformer::random_weights(const Config& c, uint64_t seed) {
  std::map<std::string, Tensor> weights;
  Random random({.seed = seed});
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, float mean,
                       float deviation) {
    Tensor& t = weights[name];
    t.shape = std::move(shape);
    int64_t size = 1;
    for (const int64_t n : t.shape) size *= n;
    t.data.resize(static_cast<size_t>(size));
    for (float& x : t.data) x = mean + deviation * random.normal();
  };
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in) {
    add(name, {out, in}, 0, 1 / std::sqrt(static_cast<float>(in)));
  };
  const int64_t d = c.width;
  matrix("embedding.weight", c.vocabulary, d);
  for (const std::string stack : {"transformer.encoder.", "transformer.decoder."}) {
    const bool decoder = stack == "transformer.decoder.";
    for (int i = 0; i < c.layers; ++i) {
      const std::string prefix = stack + "layers." + std::to_string(i) + ".";
      for (const std::string attention : {"self_attn.", "multihead_attn."}) {
        if (attention == "multihead_attn." && !decoder) continue;
        matrix(prefix + attention + "in_proj_weight", 3 * d, d);
        add(prefix + attention + "in_proj_bias", {3 * d}, 0, 0.02f);
        matrix(prefix + attention + "out_proj.weight", d, d);
        add(prefix + attention + "out_proj.bias", {d}, 0, 0.02f);
      }
      matrix(prefix + "linear1.weight", c.ffn, d);
      add(prefix + "linear1.bias", {c.ffn}, 0, 0.02f);
      matrix(prefix + "linear2.weight", d, c.ffn);
      add(prefix + "linear2.bias", {d}, 0, 0.02f);
      for (int n = 1; n <= (decoder ? 3 : 2); ++n) {
        add(prefix + "norm" + std::to_string(n) + ".weight", {d}, 1, 0.02f);
        add(prefix + "norm" + std::to_string(n) + ".bias", {d}, 0, 0.02f);
      }
    }
    if (c.pre_norm) {
      add(stack + "norm.weight", {d}, 1, 0.02f);
      add(stack + "norm.bias", {d}, 0, 0.02f);
    }
  }
  return weights;
}

const TorchTransformer::Parameter& TorchTransformer::find(const std::string& name) const {
  const auto found = parameters_.find(name);
  HEED_CHECK(found != parameters_.end(), "no weight " + name);
  return found->second;
}

std::vector<std::string> TorchTransformer::names() const {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters_) names.push_back(name);
  return names;
}

Weight TorchTransformer::weight(const std::string& name, int64_t first_row, int64_t rows) {
  auto& p = const_cast<Parameter&>(find(name));
  if (rows < 0) rows = p.rows;
  auto gradient = std::make_unique<WeightGradient>();
  gradient->value = Mat(p.gradient.data() + first_row * p.cols, rows, p.cols);
  gradients_.push_back(std::move(gradient));
  return {ConstMat(p.value.data() + first_row * p.cols, rows, p.cols), gradients_.back().get()};
}

Linear TorchTransformer::linear_layer(const std::string& weight_name, const std::string& bias_name,
                                      int64_t first_row, int64_t rows) {
  Linear layer{weight(weight_name, first_row, rows), weight(bias_name)};
  if (rows >= 0) {
    layer.bias.value = layer.bias.value.columns(first_row, rows);
    layer.bias.gradient->value = layer.bias.gradient->value.columns(first_row, rows);
  }
  return layer;
}

TorchTransformer::Attention TorchTransformer::attention_layer(const std::string& prefix,
                                                              bool cross) {
  Attention a;
  const std::string w = prefix + "in_proj_weight", b = prefix + "in_proj_bias";
  const int64_t d = config_.width;
  if (cross) {
    a.q = linear_layer(w, b, 0, d);
    a.kv = linear_layer(w, b, d, 2 * d);
  } else {
    a.qkv = linear_layer(w, b);
  }
  a.out = linear_layer(prefix + "out_proj.weight", prefix + "out_proj.bias");
  return a;
}

Norm TorchTransformer::norm_layer(const std::string& prefix) {
  return {.gamma = weight(prefix + "weight"), .beta = weight(prefix + "bias")};
}

AttentionOptions TorchTransformer::attention_options(bool causal) const {
  return {.heads = config_.heads,
          .kv_heads = config_.heads,
          .head_dim = static_cast<int>(config_.width) / config_.heads,
          .causal = causal,
          .dropout = config_.attention_dropout};
}

// LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)).
template <class Branch>
Var TorchTransformer::residual(Ctx& ctx, Var x, const Norm& n, const Branch& branch) const {
  if (config_.pre_norm) return residual_add(ctx, x, branch(norm(ctx, x, n)), config_.dropout);
  return norm(ctx, residual_add(ctx, x, branch(x), config_.dropout), n);
}

Var TorchTransformer::self_attention(Ctx& ctx, Var x, const Attention& a, const Batch& batch,
                                     bool causal) const {
  const int64_t d = config_.width;
  const auto [q, k, v] = split<3>(ctx, linear(ctx, x, a.qkv), {d, d, d});
  const Var heads =
      attention(ctx, {q, k, v, batch.offsets, batch.offsets}, attention_options(causal));
  return linear(ctx, heads, a.out);
}

Var TorchTransformer::cross_attention(Ctx& ctx, Var x, Var memory, const Attention& a,
                                      const Batch& target, const Batch& source) const {
  const int64_t d = config_.width;
  const Var q = linear(ctx, x, a.q);
  const auto [k, v] = split<2>(ctx, linear(ctx, memory, a.kv), {d, d});
  const Var heads =
      attention(ctx, {q, k, v, target.offsets, source.offsets}, attention_options(false));
  return linear(ctx, heads, a.out);
}

Var TorchTransformer::feed_forward(Ctx& ctx, Var x, const Layer& layer) const {
  return linear(ctx, linear(ctx, x, layer.ffn1, Activation::relu), layer.ffn2);
}

Var TorchTransformer::encode(Ctx& ctx, const Batch& source) const {
  Var x = embed(ctx, source, embedding_);
  for (const Layer& layer : encoder_) {
    x = residual(ctx, x, layer.norms[0],
                 [&](Var h) { return self_attention(ctx, h, layer.self, source, false); });
    x = residual(ctx, x, layer.norms[1], [&](Var h) { return feed_forward(ctx, h, layer); });
  }
  return config_.pre_norm ? norm(ctx, x, encoder_norm_) : x;
}

Var TorchTransformer::decode(Ctx& ctx, const Batch& target, Var memory, const Batch& source) const {
  Var x = embed(ctx, target, embedding_);
  for (const Layer& layer : decoder_) {
    x = residual(ctx, x, layer.norms[0],
                 [&](Var h) { return self_attention(ctx, h, layer.self, target, true); });
    x = residual(ctx, x, layer.norms[1], [&](Var h) {
      return cross_attention(ctx, h, memory, layer.cross, target, source);
    });
    x = residual(ctx, x, layer.norms[2], [&](Var h) { return feed_forward(ctx, h, layer); });
  }
  return config_.pre_norm ? norm(ctx, x, decoder_norm_) : x;
}

Var TorchTransformer::logits(Ctx& ctx, Var decoded) const { return linear(ctx, decoded, output_); }

LossSum TorchTransformer::loss(Ctx& ctx, const Batch& source, const Batch& target,
                               std::span<const int32_t> labels, float label_smoothing) const {
  const Var decoded = decode(ctx, target, encode(ctx, source), source);
  return vocabulary_cross_entropy(ctx, decoded, output_, labels,
                                  {.label_smoothing = label_smoothing,
                                   .gradient_scale = 1 / static_cast<float>(labels.size())});
}

void TorchTransformer::begin_step() {
  for (const auto& gradient : gradients_) gradient->written = false;
}

void TorchTransformer::adam(ThreadPool& pool, const kernels::AdamStep& step) {
  for (auto& entry : parameters_) {
    Parameter& p = entry.second;  // clang 14 cannot capture a structured binding
    pool.parallel_for(static_cast<int64_t>(p.value.size()), kElementGrain,
                      [&](int64_t begin, int64_t end) {
                        kernels::adam(step, p.gradient.data() + begin, p.value.data() + begin,
                                      p.m.data() + begin, p.v.data() + begin, end - begin);
                      });
  }
}

}  // namespace heed
