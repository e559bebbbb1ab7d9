// Decoders with layer norms: gpt2, gpt_neo, bloom, gpt_neox, opt.
#include <algorithm>

#include "model/hugging_face/hf_architectures.h"

namespace heed {
namespace {

// What all decoders with layer norms have in common.
void layer_norm_decoder(HfFields& f, ModelConfig& c) {
  f.always("encoder_layers", c.encoder_layers, 0);
  f.always("norm", c.norm, NormKind::layer_norm);
  f.always("norm_bias", c.norm_bias, true);
  f.always("attention_soft_cap", c.attention_soft_cap, 0);
  f.always("ffn_kind", c.ffn_kind, FfnKind::plain);
  f.always("embedding_scale", c.embedding_scale, EmbeddingScale::none);
  f.always("token_types", c.token_types, 0);
  f.always("output_bias", c.output_bias, false);
  f.always("logits_scale", c.logits_scale, 1);
  f.always("logits_soft_cap", c.logits_soft_cap, 0);
  f.always("kv_heads", c.kv_heads, 0);
  f.always("head_dim", c.head_dim, 0);
  f.always("pooler", c.pooler, false);
  if (f.reading()) c.activation_dropout = 0;
  f.id("pad_token_id", c.pad_id, -1);
  f.expect("add_cross_attention", false);
}

// Those with a norm before each sub-layer, one at the end, and biases.
void decoder_basics(HfFields& f, ModelConfig& c) {
  layer_norm_decoder(f, c);
  f.always("norm_place", c.norm_place, NormPlace::pre);
  f.always("final_norm", c.final_norm, true);
  f.always("ffn_bias", c.ffn_bias, true);
}

// GPT-2, GPT-Neo and OPT: learned positions, no norm of the embeddings.
void learned_positions(HfFields& f, ModelConfig& c, int offset = 0) {
  f.always("position", c.position, Position::learned);
  f.always("position_offset", c.position_offset, offset);
  f.always("embedding_norm", c.embedding_norm, false);
  f.always("residual", c.residual, Residual::sequential);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, true);
}

void gpt2_fields(HfFields& f, ModelConfig& c) {
  decoder_basics(f, c);
  learned_positions(f, c);
  f.value({"vocab_size"}, c.vocabulary, 50257);
  f.value({"n_embd", "hidden_size"}, c.width, 768);
  f.value({"n_layer", "num_hidden_layers"}, c.decoder_layers, 12);
  f.value({"n_head", "num_attention_heads"}, c.heads, 12);
  f.value({"n_positions", "max_position_embeddings"}, c.max_positions, 1024);
  f.value({"n_inner"}, c.ffn, 4 * c.width);
  f.value({"activation_function"}, c.activation, Activation::gelu_tanh);
  f.value({"layer_norm_epsilon"}, c.norm_eps, 1e-5f);
  f.dropout("resid_pdrop", {&c.dropout}, 0.1f);
  f.dropout("embd_pdrop", {&c.embedding_dropout}, 0.1f);
  f.dropout("attn_pdrop", {&c.attention_dropout}, 0.1f);
  f.choice("scale_attn_weights", c.attention_scale, 0.0f, 1.0f, true);
  f.expect("scale_attn_by_inverse_layer_idx", false);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_bias", c.attention_bias, AttentionBias::all);
  f.id("bos_token_id", c.bos_id, 50256);
  f.id("eos_token_id", c.eos_id, 50256);
}

void gpt2_names(HfNames& n, const ModelConfig&) {
  n.tensor("embedding.tokens", "wte.weight");
  n.tensor("embedding.positions", "wpe.weight");
  const std::string heed = "decoder.{i}.", layer = "h.{i}.";
  n.norm(heed + "self.norm", layer + "ln_1");
  n.linear(heed + "self.qkv", {layer + "attn.c_attn"}, HfLayout::transposed);
  n.linear(heed + "self.out", {layer + "attn.c_proj"}, HfLayout::transposed);
  n.norm(heed + "ffn.norm", layer + "ln_2");
  n.linear(heed + "ffn.in", {layer + "mlp.c_fc"}, HfLayout::transposed);
  n.linear(heed + "ffn.out", {layer + "mlp.c_proj"}, HfLayout::transposed);
  n.norm("decoder.norm", "ln_f");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

// attention_types [[["global", "local"], 12]]: the pattern, and how often it is repeated.
void gpt_neo_windows(HfFields& f, ModelConfig& c) {
  constexpr const char* kSupported = "lists of \"global\" and \"local\" for all layers";
  int64_t window = 256;
  if (!f.reading()) {
    Json types = Json::array();
    for (int i = 0; i < c.decoder_layers; ++i) {
      const int64_t w = c.attention == AttentionSpan::full ? 0 : window_of(c, i);
      if (w > 0) window = w;
      types.push_back(w > 0 ? "local" : "global");
    }
    for (int i = 0; i < c.decoder_layers && c.attention != AttentionSpan::full; ++i) {
      if (window_of(c, i) != 0 && window_of(c, i) != window) f.cannot("windows");
    }
    f.write("attention_types", Json::array({Json::array({types, 1})}));
    f.write("attention_layers", types);
    f.write("window_size", window);
    return;
  }
  f.value({"window_size"}, window, 256);
  f.find("attention_layers");  // follows from attention_types
  const Json* types = f.find("attention_types");
  if (!types || types->is_null()) {
    set_windows(c, {0, window}, c.decoder_layers);
    return;
  }
  std::vector<int64_t> windows;
  const auto layers = static_cast<size_t>(std::max(c.decoder_layers, 0));
  bool fine = types->is_array();
  for (size_t g = 0; fine && g < types->size() && windows.size() < layers; ++g) {
    const Json& group = (*types)[g];
    int repeats = 0;
    fine = group.is_array() && group.size() == 2 && group[0].is_array() && !group[0].empty() &&
           read_value(group[1], repeats).empty();
    for (int r = 0; fine && r < repeats && windows.size() < layers; ++r) {
      for (const Json& kind : group[0]) {
        fine = fine && (kind == "global" || kind == "local");
        windows.push_back(kind == "local" ? window : 0);
      }
    }
  }
  if (!fine || windows.size() != layers)
    return f.unsupported("attention_types", *types, kSupported);
  set_windows(c, windows, c.decoder_layers);
}

void gpt_neo_fields(HfFields& f, ModelConfig& c) {
  decoder_basics(f, c);
  learned_positions(f, c);
  f.value({"vocab_size"}, c.vocabulary, 50257);
  f.value({"hidden_size"}, c.width, 2048);
  f.value({"num_layers", "num_hidden_layers"}, c.decoder_layers, 24);
  f.value({"num_heads", "num_attention_heads"}, c.heads, 16);
  f.value({"max_position_embeddings"}, c.max_positions, 2048);
  f.value({"intermediate_size"}, c.ffn, 4 * c.width);
  f.value({"activation_function"}, c.activation, Activation::gelu_tanh);
  f.value({"layer_norm_epsilon"}, c.norm_eps, 1e-5f);
  f.dropout("resid_dropout", {&c.dropout}, 0);
  f.dropout("embed_dropout", {&c.embedding_dropout}, 0);
  f.dropout("attention_dropout", {&c.attention_dropout}, 0);
  f.always("attention_scale", c.attention_scale, 1);
  f.always("attention_bias", c.attention_bias, AttentionBias::out);
  gpt_neo_windows(f, c);
  f.id("bos_token_id", c.bos_id, 50256);
  f.id("eos_token_id", c.eos_id, 50256);
}

void gpt_neo_names(HfNames& n, const ModelConfig&) {
  n.tensor("embedding.tokens", "wte.weight");
  n.tensor("embedding.positions", "wpe.weight");
  const std::string heed = "decoder.{i}.", layer = "h.{i}.";
  const std::string self = layer + "attn.attention.";
  n.norm(heed + "self.norm", layer + "ln_1");
  n.linear(heed + "self.qkv", {self + "q_proj", self + "k_proj", self + "v_proj"});
  n.linear(heed + "self.out", {self + "out_proj"});
  n.norm(heed + "ffn.norm", layer + "ln_2");
  n.linear(heed + "ffn.in", {layer + "mlp.c_fc"});
  n.linear(heed + "ffn.out", {layer + "mlp.c_proj"});
  n.norm("decoder.norm", "ln_f");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

void bloom_fields(HfFields& f, ModelConfig& c) {
  decoder_basics(f, c);
  f.value({"vocab_size"}, c.vocabulary, 250880);
  f.value({"hidden_size", "n_embed"}, c.width, 64);
  f.value({"n_layer", "num_hidden_layers"}, c.decoder_layers, 2);
  f.value({"n_head", "num_attention_heads"}, c.heads, 8);
  f.value({"layer_norm_epsilon"}, c.norm_eps, 1e-5f);
  f.dropout("hidden_dropout", {&c.dropout}, 0);
  f.dropout("attention_dropout", {&c.attention_dropout}, 0);
  if (f.reading()) c.embedding_dropout = 0;
  f.value({"seq_length"}, c.max_positions, 2048);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, true);
  f.expect("apply_residual_connection_post_layernorm", false);
  f.always("ffn", c.ffn, 4 * c.width);
  f.always("activation", c.activation, Activation::gelu_tanh);
  f.always("position", c.position, Position::alibi);
  f.always("embedding_norm", c.embedding_norm, true);
  f.always("residual", c.residual, Residual::sequential);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_scale", c.attention_scale, 0);
  f.always("attention_bias", c.attention_bias, AttentionBias::all);
  f.id("bos_token_id", c.bos_id, 1);
  f.id("eos_token_id", c.eos_id, 2);
}

// The layers of Megatron, on which Bloom and GPT-NeoX are based.
void megatron_layer(HfNames& n, const std::string& layer, const std::string& attention) {
  const std::string heed = "decoder.{i}.";
  n.norm(heed + "self.norm", layer + "input_layernorm");
  n.linear(heed + "self.qkv", {layer + attention + ".query_key_value"}, HfLayout::per_head);
  n.linear(heed + "self.out", {layer + attention + ".dense"});
  n.norm(heed + "ffn.norm", layer + "post_attention_layernorm");
  n.linear(heed + "ffn.in", {layer + "mlp.dense_h_to_4h"});
  n.linear(heed + "ffn.out", {layer + "mlp.dense_4h_to_h"});
}

void bloom_names(HfNames& n, const ModelConfig&) {
  n.tensor("embedding.tokens", "word_embeddings.weight");
  n.norm("embedding.norm", "word_embeddings_layernorm");
  megatron_layer(n, "h.{i}.", "self_attention");
  n.norm("decoder.norm", "ln_f");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

void gpt_neox_fields(HfFields& f, ModelConfig& c) {
  decoder_basics(f, c);
  f.value({"vocab_size"}, c.vocabulary, 50432);
  f.value({"hidden_size"}, c.width, 6144);
  f.value({"num_hidden_layers"}, c.decoder_layers, 44);
  f.value({"num_attention_heads"}, c.heads, 64);
  f.value({"intermediate_size"}, c.ffn, 24576);
  f.value({"hidden_act"}, c.activation, Activation::gelu);
  f.value({"rotary_pct", "partial_rotary_factor"}, c.rope_fraction, 0.25f);
  f.value({"rotary_emb_base", "rope_theta"}, c.rope_base, 10000);
  f.value({"max_position_embeddings"}, c.max_positions, 2048);
  f.value({"layer_norm_eps"}, c.norm_eps, 1e-5f);
  f.dropout("hidden_dropout", {&c.dropout, &c.embedding_dropout}, 0);
  f.dropout("attention_dropout", {&c.attention_dropout}, 0);
  f.choice("use_parallel_residual", c.residual, Residual::parallel, Residual::sequential, true);
  f.choice("attention_bias", c.attention_bias, AttentionBias::all, AttentionBias::none, true);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, false);
  hf_rope_scaling(f, c);
  f.always("position", c.position, Position::rope);
  f.always("rope_layout", c.rope_layout, RopeLayout::half);
  f.always("embedding_norm", c.embedding_norm, false);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_scale", c.attention_scale, 0);
  f.id("bos_token_id", c.bos_id, 0);
  f.id("eos_token_id", c.eos_id, 2);
}

void gpt_neox_names(HfNames& n, const ModelConfig&) {
  n.tensor("embedding.tokens", "embed_in.weight");
  megatron_layer(n, "layers.{i}.", "attention");
  n.norm("decoder.norm", "final_layer_norm");
  n.begin_head();
  n.tensor("output.weight", "embed_out.weight");
}

// OPT (Zhang et al. 2022). Positions start at row 2 of the table.
void opt_fields(HfFields& f, ModelConfig& c) {
  layer_norm_decoder(f, c);
  learned_positions(f, c, 2);
  f.value({"vocab_size"}, c.vocabulary, 50272);
  f.value({"hidden_size"}, c.width, 768);
  f.value({"num_hidden_layers"}, c.decoder_layers, 12);
  f.value({"num_attention_heads"}, c.heads, 12);
  f.value({"ffn_dim"}, c.ffn, 3072);
  f.value({"max_position_embeddings"}, c.max_positions, 2048);
  f.value({"activation_function"}, c.activation, Activation::relu);
  f.dropout("dropout", {&c.dropout}, 0.1f);
  f.dropout("attention_dropout", {&c.attention_dropout}, 0);
  if (f.reading()) c.embedding_dropout = 0;
  f.choice("do_layer_norm_before", c.norm_place, NormPlace::pre, NormPlace::post, true);
  // Only pre-norm models have a final norm; the first checkpoints lack it.
  bool is_removed = c.norm_place == NormPlace::pre && !c.final_norm;
  f.value({"_remove_final_layer_norm"}, is_removed, false);
  f.always("final_norm", c.final_norm, c.norm_place == NormPlace::pre && !is_removed);
  f.choice("enable_bias", c.attention_bias, AttentionBias::all, AttentionBias::none, true);
  f.always("ffn_bias", c.ffn_bias, c.attention_bias == AttentionBias::all);
  f.expect("word_embed_proj_dim", c.width);
  f.expect("layer_norm_elementwise_affine", true);
  f.always("norm_eps", c.norm_eps, 1e-5f);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_scale", c.attention_scale, 0);
  f.id("bos_token_id", c.bos_id, 2);
  f.id("eos_token_id", c.eos_id, 2);
  if (!f.reading()) f.write("word_embed_proj_dim", c.width);
}

void opt_names(HfNames& n, const ModelConfig&) {
  n.tensor("embedding.tokens", "decoder.embed_tokens.weight");
  n.tensor("embedding.positions", "decoder.embed_positions.weight");
  const std::string heed = "decoder.{i}.", layer = "decoder.layers.{i}.";
  const std::string self = layer + "self_attn.";
  n.norm(heed + "self.norm", layer + "self_attn_layer_norm");
  n.linear(heed + "self.qkv", {self + "q_proj", self + "k_proj", self + "v_proj"});
  n.linear(heed + "self.out", {self + "out_proj"});
  n.norm(heed + "ffn.norm", layer + "final_layer_norm");
  n.linear(heed + "ffn.in", {layer + "fc1"});
  n.linear(heed + "ffn.out", {layer + "fc2"});
  n.norm("decoder.norm", "decoder.final_layer_norm");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

std::vector<HfClass> decoder_classes(const char* with_head, const char* model) {
  return {{with_head, Head::language_model, Family::decoder_only},
          {model, Head::none, Family::decoder_only}};
}

}  // namespace

std::vector<HfArchitecture> hf_gpt_family() {
  std::vector<HfArchitecture> family;
  family.push_back(
      {"gpt2",
       "transformer.",
       decoder_classes("GPT2LMHeadModel", "GPT2Model"),
       gpt2_fields,
       gpt2_names,
       {"*.attn.bias", "*.attn.masked_bias", "lm_head.weight"},
       {"n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
        "summary_proj_to_labels", "summary_type", "summary_use_proj"}});
  family.push_back({"gpt_neo",
                    "transformer.",
                    decoder_classes("GPTNeoForCausalLM", "GPTNeoModel"),
                    gpt_neo_fields,
                    gpt_neo_names,
                    {"*.attn.attention.bias", "*.attn.attention.masked_bias", "lm_head.weight"},
                    {"classifier_dropout", "summary_activation", "summary_first_dropout",
                     "summary_proj_to_labels", "summary_type", "summary_use_proj"}});
  family.push_back({"bloom",
                    "transformer.",
                    decoder_classes("BloomForCausalLM", "BloomModel"),
                    bloom_fields,
                    bloom_names,
                    {"lm_head.weight"},
                    {"pretraining_tp", "slow_but_exact", "offset_alibi", "masked_softmax_fusion",
                     "attention_softmax_in_fp32", "bias_dropout_fusion", "unk_token_id",
                     "skip_bias_add", "skip_bias_add_qkv", "n_inner"}});
  family.push_back(
      {"gpt_neox",
       "gpt_neox.",
       decoder_classes("GPTNeoXForCausalLM", "GPTNeoXModel"),
       gpt_neox_fields,
       gpt_neox_names,
       {"*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq", "embed_out.weight"},
       {"classifier_dropout"}});
  family.push_back({"opt",
                    "model.",
                    decoder_classes("OPTForCausalLM", "OPTModel"),
                    opt_fields,
                    opt_names,
                    {"lm_head.weight"},
                    {"activation_dropout", "layerdrop", "init_std"}});
  return family;
}

}  // namespace heed
