#include "reference_model.h"

#include <algorithm>
#include <cmath>

#include "ops/positions_testing.h"

namespace heed::matrix {

namespace ref = reference;

ReferenceModel::ReferenceModel(const ModelConfig& config, const Parameters& parameters)
    : c_(config) {
  for (const ParameterSpec& spec : parameters.specs()) {
    weights_[spec.name] =
        Matrix(ConstMat(parameters.values(spec.name).data(), spec.rows, spec.cols));
    if (spec.name.ends_with(".tokens")) frozen_[spec.name] = weights_[spec.name];
  }
}

const ref::Matrix* ReferenceModel::find(const std::string& name) const {
  const auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : &found->second;
}

ref::Matrix ReferenceModel::linear(const Matrix& x, const std::string& name) const {
  return ref::linear(x, weights_.at(name + ".weight"), find(name + ".bias"));
}

ref::Matrix ReferenceModel::norm(const Matrix& x, const std::string& name) const {
  return ref::norm(x, {.kind = c_.norm,
                       .gamma = &weights_.at(name + ".gamma"),
                       .beta = find(name + ".beta"),
                       .eps = c_.norm_eps,
                       .gamma_offset = c_.norm_offset});
}

ref::Matrix ReferenceModel::embed(const Side& side, const PackedBatch& packed) const {
  const bool own = find(side.embedding + ".tokens") != nullptr;
  const std::string name = (own ? side.embedding : "embedding") + ".tokens";
  const Matrix& tokens = weights_.at(name);
  Matrix x(static_cast<int64_t>(packed.tokens.size()), c_.width);
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto row = static_cast<size_t>(r);
    const int32_t id = packed.tokens[row];
    const int64_t position = packed.positions[row] + c_.position_offset;
    const Matrix& table = c_.pad_frozen && id == c_.pad_id ? frozen_.at(name) : tokens;
    for (int64_t c = 0; c < c_.width; ++c) {
      double value = table.at(id, c);
      if (c_.embedding_scale == EmbeddingScale::sqrt_width) {
        value *= std::sqrt(static_cast<double>(c_.width));
      }
      if (c_.position == Position::learned) {
        value += weights_.at(side.embedding + ".positions").at(position, c);
      } else if (c_.position == Position::sinusoidal) {
        const int64_t half = c_.width / 2;
        if (c_.sinusoid_layout == SinusoidLayout::half_inclusive) {
          const double wave =
              std::pow(10000.0, static_cast<double>(c % half) / static_cast<double>(half - 1));
          const double angle = static_cast<double>(position) / wave;
          value += c < half ? std::sin(angle) : std::cos(angle);
        } else {
          value += ref::sinusoid(position, c, c_.width, c_.sinusoid_layout);
        }
      }
      if (const Matrix* types = find("embedding.token_types");
          types && side.embedding == "embedding") {
        value += types->at(packed.token_types[row], c);
      }
      x.at(r, c) = value;
    }
  }
  return c_.embedding_norm ? norm(x, side.embedding + ".norm") : x;
}

// RoPE with the scalings that ref::rope does not have.
ref::Matrix ReferenceModel::rotated(const Matrix& x, const PackedBatch& packed, int heads,
                                    int head_dim) const {
  const RopeReference rope = rope_reference(c_.rope_formula(head_dim));
  const auto pairs = static_cast<int>(rope.frequencies.size());
  Matrix y = x;
  for (int i = 0; i < pairs; ++i) {
    const bool half = c_.rope_layout == RopeLayout::half;
    for (int64_t r = 0; r < x.rows; ++r) {
      const double angle =
          packed.positions[static_cast<size_t>(r)] * rope.frequencies[static_cast<size_t>(i)];
      const double cosine = rope.magnitude * std::cos(angle);
      const double sine = rope.magnitude * std::sin(angle);
      for (int h = 0; h < heads; ++h) {
        const int64_t a = int64_t{h} * head_dim + (half ? i : 2 * i), b = half ? a + pairs : a + 1;
        y.at(r, a) = x.at(r, a) * cosine - x.at(r, b) * sine;
        y.at(r, b) = x.at(r, a) * sine + x.at(r, b) * cosine;
      }
    }
  }
  return y;
}

AttentionOptions ReferenceModel::attention_options(const Side& side) const {
  return {.heads = side.heads,
          .kv_heads = c_.kv_heads ? c_.kv_heads : side.heads,
          .head_dim = c_.head_dim ? c_.head_dim : static_cast<int>(c_.width) / side.heads,
          .scale = c_.attention_scale,
          .soft_cap = c_.attention_soft_cap};
}

ref::Matrix ReferenceModel::self_attention(const Matrix& x, const Side& side, int layer,
                                           const Text& text) const {
  const std::string name = side.name + "." + std::to_string(layer);
  AttentionOptions o = attention_options(side);
  const int64_t q_width = int64_t{o.heads} * o.head_dim,
                kv_width = int64_t{o.kv_heads} * o.head_dim;
  const Matrix qkv = linear(x, name + ".self.qkv");
  Matrix q = ref::columns(qkv, 0, q_width), k = ref::columns(qkv, q_width, kv_width);
  const Matrix v = ref::columns(qkv, q_width + kv_width, kv_width);
  if (c_.position == Position::rope) {
    q = rotated(q, text.packed, o.heads, o.head_dim);
    k = rotated(k, text.packed, o.kv_heads, o.head_dim);
  }
  o.causal = side.causal;
  if (!c_.windows.empty()) o.window = c_.windows[static_cast<size_t>(layer) % c_.windows.size()];
  o.symmetric = !side.causal;
  o.bias = c_.relative_bias(side.causal);
  const Matrix* bias_weights = find(side.name + "." + std::string(info(o.bias.kind).weight));
  if (text.global) o.global_tokens = text.global->flags;
  const std::span<const int32_t> offsets = text.packed.offsets;
  Matrix heads = ref::attention({&q, &k, &v, offsets, offsets, bias_weights, {}}, o).out;
  if (text.global) {
    const Matrix all = linear(x, name + ".global.qkv");
    const Matrix global_q = ref::take_rows(ref::columns(all, 0, q_width), text.global->rows);
    const Matrix global_k = ref::columns(all, q_width, kv_width);
    const Matrix global_v = ref::columns(all, q_width + kv_width, kv_width);
    const Matrix rows =
        ref::attention(
            {&global_q, &global_k, &global_v, text.global->offsets, offsets, nullptr, {}},
            attention_options(side))
            .out;
    for (size_t r = 0; r < text.global->rows.size(); ++r) {
      for (int64_t c = 0; c < q_width; ++c) {
        heads.at(text.global->rows[r], c) = rows.at(static_cast<int64_t>(r), c);
      }
    }
  }
  return linear(heads, name + ".self.out");
}

ref::Matrix ReferenceModel::cross_attention(const Matrix& x, const Side& side, int layer,
                                            const Text& text) const {
  const std::string name = side.name + "." + std::to_string(layer) + ".cross";
  const AttentionOptions o = attention_options(side);
  const int64_t kv_width = int64_t{o.kv_heads} * o.head_dim;
  const Matrix q = linear(x, name + ".q"), kv = linear(*text.memory, name + ".kv");
  const Matrix k = ref::columns(kv, 0, kv_width), v = ref::columns(kv, kv_width, kv_width);
  return linear(
      ref::attention({&q, &k, &v, text.packed.offsets, text.source->offsets, nullptr, {}}, o).out,
      name + ".out");
}

ref::Matrix ReferenceModel::feed_forward(const Matrix& x, const std::string& name) const {
  const Matrix in = linear(x, name + ".in");
  if (c_.ffn_kind == FfnKind::plain) {
    return linear(ref::activate(in, c_.activation), name + ".out");
  }
  const int64_t half = in.cols / 2;
  return linear(ref::gated(ref::columns(in, 0, half), ref::columns(in, half, half), c_.activation),
                name + ".out");
}

ref::Matrix ReferenceModel::stack(const Side& side, const Text& text) const {
  Matrix x = embed(side, text.packed);
  for (int i = 0; i < side.layers; ++i) {
    const std::string layer = side.name + "." + std::to_string(i);
    const auto add_branch = [&](const std::string& name, const auto& branch) {
      if (c_.norm_place == NormPlace::post) {
        x = norm(ref::add(x, branch(x)), layer + name + ".norm");
        return;
      }
      Matrix y = branch(norm(x, layer + name + ".norm"));
      if (c_.norm_place == NormPlace::both) y = norm(y, layer + name + ".post_norm");
      x = ref::add(x, y);
    };
    const auto attend = [&](const Matrix& h) { return self_attention(h, side, i, text); };
    const auto feed = [&](const Matrix& h) { return feed_forward(h, layer + ".ffn"); };
    if (c_.residual == Residual::parallel) {
      const Matrix fed = feed(norm(x, layer + ".ffn.norm"));
      x = ref::add(ref::add(x, attend(norm(x, layer + ".self.norm"))), fed);
      continue;
    }
    add_branch(".self", attend);
    if (text.memory) {
      add_branch(".cross", [&](const Matrix& h) { return cross_attention(h, side, i, text); });
    }
    add_branch(".ffn", feed);
  }
  return c_.final_norm ? norm(x, side.name + ".norm") : x;
}

ref::Matrix ReferenceModel::hidden(const Sample& sample) const {
  const bool seq2seq = c_.family == Family::encoder_decoder;
  const int decoder_heads = c_.decoder_heads ? c_.decoder_heads : c_.heads;
  if (c_.family == Family::decoder_only) {
    return stack({"decoder", "embedding", c_.decoder_layers, decoder_heads, true},
                 {.packed = sample.source});
  }
  const Matrix encoded = stack({"encoder", "embedding", c_.encoder_layers, c_.heads, false},
                               {.packed = sample.source, .global = sample.global_tokens()});
  if (!seq2seq) return encoded;
  return stack({"decoder", "target", c_.decoder_layers, decoder_heads, true},
               {.packed = sample.target, .memory = &encoded, .source = &sample.source});
}

ref::Matrix ReferenceModel::output(const Sample& sample) const {
  Matrix x = hidden(sample);
  const std::vector<int32_t>& offsets = sample.source.offsets;
  switch (c_.head) {
    case Head::masked_lm:
      x = norm(ref::activate(linear(x, "head.dense"), c_.head_activation == Activation::none
                                                          ? c_.activation
                                                          : c_.head_activation),
               "head.norm");
      [[fallthrough]];
    case Head::language_model: {
      const Matrix* matrix = find("output.weight");
      if (!matrix) matrix = find("target.tokens");
      if (!matrix) matrix = find("embedding.tokens");
      x = ref::linear(ref::scale(x, c_.logits_scale), *matrix, find("output.bias"));
      if (c_.logits_soft_cap > 0) {
        for (double& z : x.values) z = c_.logits_soft_cap * std::tanh(z / c_.logits_soft_cap);
      }
      return x;
    }
    case Head::classifier:
    case Head::regression:
      if (c_.pooler) {
        x = ref::activate(linear(ref::pool(x, offsets, Pooling::first), "pooler"),
                          Activation::tanh);
      } else {
        x = ref::pool(x, offsets, c_.pooling);
      }
      if (c_.head_activation != Activation::none) {
        x = ref::activate(linear(x, "head.dense"), c_.head_activation);
      }
      [[fallthrough]];
    case Head::token_classifier:
      return linear(x, "head.output");
    case Head::embedding:
      return ref::pool(x, offsets, c_.pooling);
    case Head::none:
      break;
  }
  return x;
}

double ReferenceModel::loss(const Sample& sample) const {
  const Matrix found = output(sample);
  if (sample.has_values()) {
    return ref::squared_error(found,
                              Matrix(ConstMat(sample.values.data(), found.rows, found.cols)));
  }
  return ref::cross_entropy(found, sample.labels, {});
}

}  // namespace heed::matrix
