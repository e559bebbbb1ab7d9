// Decoders with RMS norms, rotary positions and gated feed-forward layers: llama, mistral, qwen2,
// gemma, gemma2.
#include <algorithm>
#include <cmath>

#include "model/hugging_face/hf_architectures.h"

namespace heed {

void hf_rope_scaling(HfFields& f, ModelConfig& c) {
  if (!f.reading()) {
    Json scaling;
    if (c.rope_scaling == RopeScaling::linear) {
      scaling = {{"rope_type", "linear"}, {"factor", value_json(c.rope_factor)}};
    } else if (c.rope_scaling == RopeScaling::llama3) {
      scaling = {{"rope_type", "llama3"},
                 {"factor", value_json(c.rope_factor)},
                 {"low_freq_factor", value_json(c.rope_low_frequency_factor)},
                 {"high_freq_factor", value_json(c.rope_high_frequency_factor)},
                 {"original_max_position_embeddings", c.rope_original_positions}};
    } else if (c.rope_scaling == RopeScaling::yarn) {
      scaling = {{"rope_type", "yarn"},
                 {"factor", value_json(c.rope_factor)},
                 {"original_max_position_embeddings", c.rope_original_positions}};
    }
    f.write("rope_scaling", scaling);
    return;
  }
  c.rope_scaling = RopeScaling::none;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* found = f.find(key);
    if (!found || found->is_null()) continue;
    if (!found->is_object()) return f.unsupported(key, *found, "an object, or null");
    HfFields s(*found, nullptr);
    std::string type = "default";
    for (const char* name : {"rope_type", "type"}) {
      const Json* value = s.find(name);
      if (value && value->is_string()) type = value->get<std::string>();
    }
    s.value({"rope_theta"}, c.rope_base, c.rope_base);
    const std::optional<RopeScaling> scaling = from_name<RopeScaling>(type);
    bool known = type == "default" || (scaling && *scaling != RopeScaling::none);
    if (scaling && known) {
      c.rope_scaling = *scaling;
      s.value({"factor"}, c.rope_factor, 1);
    }
    if (type == "llama3") {
      s.value({"low_freq_factor"}, c.rope_low_frequency_factor, 1);
      s.value({"high_freq_factor"}, c.rope_high_frequency_factor, 4);
    }
    if (needs_original_positions(c.rope_scaling)) {
      s.value({"original_max_position_embeddings"}, c.rope_original_positions, c.max_positions);
    }
    if (type == "yarn") {
      float fast = 0, slow = 0;
      s.value({"beta_fast"}, fast, kYarnFast);
      s.value({"beta_slow"}, slow, kYarnSlow);
      known = fast == kYarnFast && slow == kYarnSlow;
    }
    if (!known || !s.unread().empty() || !s.problems().empty()) {
      f.unsupported(key, *found,
                    "the rope_type default, linear, llama3 or yarn (beta_fast 32, beta_slow 1), "
                    "and its numbers");
    }
  }
}

namespace {

// The defaults of a transformers class.
struct Defaults {
  int64_t vocabulary, width, ffn;
  int layers, heads;
  int kv_heads = 0, head_dim = 0;  // 0: as heads, and width / heads
  int64_t positions = 2048;
  int pad_id = -1, bos_id = 1, eos_id = 2;
};

void rms_decoder_basics(HfFields& f, ModelConfig& c, const Defaults& d) {
  f.always("encoder_layers", c.encoder_layers, 0);
  f.always("position", c.position, Position::rope);
  f.always("rope_layout", c.rope_layout, RopeLayout::half);
  f.always("rope_fraction", c.rope_fraction, 1);
  f.always("norm", c.norm, NormKind::rms_norm);
  f.always("final_norm", c.final_norm, true);
  f.always("embedding_norm", c.embedding_norm, false);
  f.always("residual", c.residual, Residual::sequential);
  f.always("ffn_kind", c.ffn_kind, FfnKind::gated);
  f.always("token_types", c.token_types, 0);
  f.always("output_bias", c.output_bias, false);
  f.always("logits_scale", c.logits_scale, 1);
  f.always("pooler", c.pooler, false);
  if (f.reading()) c.pad_frozen = true;
  if (f.reading()) c.dropout = c.embedding_dropout = c.activation_dropout = 0;
  f.dropout("attention_dropout", {&c.attention_dropout}, 0);
  f.value({"vocab_size"}, c.vocabulary, d.vocabulary);
  f.value({"hidden_size"}, c.width, d.width);
  f.value({"intermediate_size"}, c.ffn, d.ffn);
  f.value({"num_hidden_layers"}, c.decoder_layers, d.layers);
  f.value({"num_attention_heads"}, c.heads, d.heads);
  int kv_heads = c.stack(Side::decoder).kv_heads;
  f.size({"num_key_value_heads"}, kv_heads, d.kv_heads ? d.kv_heads : c.heads);
  if (f.reading()) c.kv_heads = kv_heads;
  int head_dim = c.head_dim;
  const int derived = c.heads > 0 ? static_cast<int>(c.width / c.heads) : 0;
  if (head_dim == 0) head_dim = derived;
  f.size({"head_dim"}, head_dim, d.head_dim ? d.head_dim : derived);
  if (f.reading()) c.head_dim = head_dim;
  f.value({"max_position_embeddings"}, c.max_positions, d.positions);
  f.value({"rms_norm_eps"}, c.norm_eps, 1e-6f);
  f.value({"rope_theta"}, c.rope_base, 10000);
  hf_rope_scaling(f, c);
  f.id("pad_token_id", c.pad_id, d.pad_id);
  f.id("bos_token_id", c.bos_id, d.bos_id);
  f.id("eos_token_id", c.eos_id, d.eos_id);
}

// What LLaMA, Mistral and Qwen2 share and Gemma does not.
void llama_basics(HfFields& f, ModelConfig& c, const Defaults& d) {
  rms_decoder_basics(f, c, d);
  f.always("norm_place", c.norm_place, NormPlace::pre);
  f.always("norm_offset", c.norm_offset, 0);
  f.always("attention_scale", c.attention_scale, 0);
  f.always("attention_soft_cap", c.attention_soft_cap, 0);
  f.always("embedding_scale", c.embedding_scale, EmbeddingScale::none);
  f.always("logits_soft_cap", c.logits_soft_cap, 0);
  f.value({"hidden_act"}, c.activation, Activation::silu);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, false);
}

// A window in positions; 0: none.
void window_field(HfFields& f, int64_t& window) {
  f.nullable({"sliding_window"}, window, 4096, 0);
  if (f.reading() && window < 0) {
    f.unsupported("sliding_window", window, "null or a number of positions");
    window = 0;
  }
}

void llama_fields(HfFields& f, ModelConfig& c) {
  llama_basics(f, c, {.vocabulary = 32000, .width = 4096, .ffn = 11008, .layers = 32, .heads = 32});
  f.choice("attention_bias", c.attention_bias, AttentionBias::all, AttentionBias::none, false);
  f.value({"mlp_bias"}, c.ffn_bias, false);
  f.always("attention", c.attention, AttentionSpan::full);
}

void mistral_fields(HfFields& f, ModelConfig& c) {
  llama_basics(f, c,
               {.vocabulary = 32000,
                .width = 4096,
                .ffn = 14336,
                .layers = 32,
                .heads = 32,
                .kv_heads = 8,
                .positions = 131072});
  f.always("attention_bias", c.attention_bias, AttentionBias::none);
  f.always("ffn_bias", c.ffn_bias, false);
  int64_t window = c.attention == AttentionSpan::full ? 0 : window_of(c, 0);
  window_field(f, window);
  std::vector<int64_t> windows(window > 0 ? 1 : 0, window);
  if (f.reading()) return set_windows(c, windows, c.decoder_layers);
  for (int i = 0; i < c.decoder_layers; ++i) {
    if (window_of(c, i) != window) return f.cannot("windows");
  }
}

// layer_types names the attention of each layer and overrides the other fields.
void read_layer_types(HfFields& f, int64_t window, std::vector<int64_t>& windows) {
  const Json* types = f.find("layer_types");
  if (!types || types->is_null()) return;
  bool fine = types->is_array() && types->size() == windows.size();
  for (size_t i = 0; fine && i < windows.size(); ++i) {
    const Json& type = (*types)[i];
    fine = type == "full_attention" || (type == "sliding_attention" && window > 0);
    windows[i] = type == "full_attention" ? 0 : window;
  }
  if (!fine) {
    f.unsupported("layer_types", *types,
                  "full_attention and, with a sliding_window, sliding_attention");
  }
}

// A window for each layer. The number of layers is not checked yet: it must not exhaust memory.
std::vector<int64_t> no_windows(const ModelConfig& c) {
  return std::vector<int64_t>(static_cast<size_t>(std::clamp(c.decoder_layers, 0, kMostLayers)));
}

// Qwen2: the layers from max_window_layers on have a window.
void qwen2_windows(HfFields& f, ModelConfig& c) {
  if (!f.reading()) {
    int64_t window = 0;
    int first = c.decoder_layers;
    for (int i = c.decoder_layers - 1; i >= 0 && window_of(c, i) > 0; --i) {
      first = i, window = window_of(c, i);
    }
    for (int i = 0; i < c.decoder_layers; ++i) {
      if (window_of(c, i) != (i < first ? 0 : window)) return f.cannot("windows");
    }
    f.write("use_sliding_window", window > 0);
    f.write("sliding_window", window > 0 ? Json(window) : Json());
    f.write("max_window_layers", first);
    return;
  }
  bool used = false;
  int64_t window = 0;
  int first = 28;
  f.value({"use_sliding_window"}, used, false);
  window_field(f, window);
  f.value({"max_window_layers"}, first, 28);
  if (!used) window = 0;
  std::vector<int64_t> windows = no_windows(c);
  for (size_t i = static_cast<size_t>(std::max(first, 0)); i < windows.size(); ++i) {
    windows[i] = window;
  }
  read_layer_types(f, window, windows);
  set_windows(c, windows, c.decoder_layers);
}

void qwen2_fields(HfFields& f, ModelConfig& c) {
  llama_basics(f, c,
               {.vocabulary = 151936,
                .width = 4096,
                .ffn = 22016,
                .layers = 32,
                .heads = 32,
                .kv_heads = 32,
                .positions = 32768,
                .bos_id = -1,
                .eos_id = -1});
  f.always("attention_bias", c.attention_bias, AttentionBias::qkv);
  f.always("ffn_bias", c.ffn_bias, false);
  qwen2_windows(f, c);
}

void gemma_fields(HfFields& f, ModelConfig& c) {
  rms_decoder_basics(f, c,
                     {.vocabulary = 256000,
                      .width = 3072,
                      .ffn = 24576,
                      .layers = 28,
                      .heads = 16,
                      .kv_heads = 16,
                      .head_dim = 256,
                      .positions = 8192,
                      .pad_id = 0,
                      .bos_id = 2,
                      .eos_id = 1});
  f.always("norm_place", c.norm_place, NormPlace::pre);
  f.always("norm_offset", c.norm_offset, 1);
  f.always("embedding_scale", c.embedding_scale, EmbeddingScale::sqrt_width);
  f.always("ffn_bias", c.ffn_bias, false);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_scale", c.attention_scale, 0);
  f.always("attention_soft_cap", c.attention_soft_cap, 0);
  f.always("logits_soft_cap", c.logits_soft_cap, 0);
  f.value({"hidden_activation"}, c.activation, Activation::gelu_tanh);
  f.choice("attention_bias", c.attention_bias, AttentionBias::all, AttentionBias::none, false);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, true);
}

void gemma2_fields(HfFields& f, ModelConfig& c) {
  rms_decoder_basics(f, c,
                     {.vocabulary = 256000,
                      .width = 2304,
                      .ffn = 9216,
                      .layers = 26,
                      .heads = 8,
                      .kv_heads = 4,
                      .head_dim = 256,
                      .positions = 8192,
                      .pad_id = 0,
                      .bos_id = 2,
                      .eos_id = 1});
  f.always("norm_place", c.norm_place, NormPlace::both);
  f.always("norm_offset", c.norm_offset, 1);
  f.always("embedding_scale", c.embedding_scale, EmbeddingScale::sqrt_width);
  f.always("ffn_bias", c.ffn_bias, false);
  f.value({"hidden_activation"}, c.activation, Activation::gelu_tanh);
  f.nullable({"attn_logit_softcapping"}, c.attention_soft_cap, 50, 0);
  f.nullable({"final_logit_softcapping"}, c.logits_soft_cap, 30, 0);
  f.choice("attention_bias", c.attention_bias, AttentionBias::all, AttentionBias::none, false);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, true);
  float scalar = 0;
  if (!f.reading()) {
    const double scale = c.attention_scale;
    scalar = static_cast<float>(scale > 0 ? 1 / (scale * scale) : c.stack(Side::decoder).head_dim);
  }
  // Almost always a whole number, which the square of a rounded root is not.
  if (std::abs(scalar - std::round(scalar)) < 1e-4f * scalar) scalar = std::round(scalar);
  f.value({"query_pre_attn_scalar"}, scalar, 256);
  if (f.reading()) {
    if (scalar > 0)
      c.attention_scale = static_cast<float>(1 / std::sqrt(double{scalar}));
    else
      f.cannot("query_pre_attn_scalar must be positive");
  }
  // Every second layer, from the first on, has a window.
  int64_t window = window_of(c, 0);
  window_field(f, window);
  if (f.reading()) {
    std::vector<int64_t> windows = no_windows(c);
    for (size_t i = 0; i < windows.size(); i += 2) windows[i] = window;
    read_layer_types(f, window, windows);
    set_windows(c, windows, c.decoder_layers);
  } else {
    for (int i = 0; i < c.decoder_layers; ++i) {
      if (window_of(c, i) != (i % 2 ? 0 : window)) return f.cannot("windows");
    }
  }
}

void llama_body(HfNames& n) {
  n.tensor("embedding.tokens", "embed_tokens.weight");
  const std::string heed = "decoder.{i}.", layer = "layers.{i}.";
  const std::string self = layer + "self_attn.", mlp = layer + "mlp.";
  n.norm(heed + "self.norm", layer + "input_layernorm");
  n.linear(heed + "self.qkv", {self + "q_proj", self + "k_proj", self + "v_proj"});
  n.linear(heed + "self.out", {self + "o_proj"});
  n.linear(heed + "ffn.in", {mlp + "gate_proj", mlp + "up_proj"});
  n.linear(heed + "ffn.out", {mlp + "down_proj"});
  n.norm("decoder.norm", "norm");
}

void llama_names(HfNames& n, const ModelConfig&) {
  llama_body(n);
  n.norm("decoder.{i}.ffn.norm", "layers.{i}.post_attention_layernorm");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

void gemma2_names(HfNames& n, const ModelConfig&) {
  llama_body(n);
  n.norm("decoder.{i}.self.post_norm", "layers.{i}.post_attention_layernorm");
  n.norm("decoder.{i}.ffn.norm", "layers.{i}.pre_feedforward_layernorm");
  n.norm("decoder.{i}.ffn.post_norm", "layers.{i}.post_feedforward_layernorm");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

HfArchitecture llama_like(const char* model_type, std::vector<HfClass> classes,
                          void (*fields)(HfFields&, ModelConfig&),
                          void (*names)(HfNames&, const ModelConfig&)) {
  return {model_type,
          "model.",
          std::move(classes),
          fields,
          names,
          {"*rotary_emb.inv_freq", "lm_head.weight"},
          {"pretraining_tp", "hidden_act", "cache_implementation"}};
}

}  // namespace

std::vector<HfArchitecture> hf_llama_family() {
  const auto classes = [](const char* with_head, const char* model) {
    return std::vector<HfClass>{{with_head, Head::language_model, Family::decoder_only},
                                {model, Head::none, Family::decoder_only}};
  };
  std::vector<HfArchitecture> family;
  family.push_back(
      llama_like("llama", classes("LlamaForCausalLM", "LlamaModel"), llama_fields, llama_names));
  family.push_back(llama_like("mistral", classes("MistralForCausalLM", "MistralModel"),
                              mistral_fields, llama_names));
  family.push_back(
      llama_like("qwen2", classes("Qwen2ForCausalLM", "Qwen2Model"), qwen2_fields, llama_names));
  family.push_back(
      llama_like("gemma", classes("GemmaForCausalLM", "GemmaModel"), gemma_fields, llama_names));
  family.push_back(llama_like("gemma2", classes("Gemma2ForCausalLM", "Gemma2Model"), gemma2_fields,
                              gemma2_names));
  return family;
}

}  // namespace heed
