// T5 and its descendants: t5 (also byt5 and the v1.1 models), mt5.
#include <cmath>

#include "model/hugging_face/hf_architectures.h"

namespace heed {
namespace {

// feed_forward_proj is "relu", "gated-gelu", …; dense_act_fn and is_gated_act, where they are
// present, override it.
void t5_feed_forward(HfFields& f, ModelConfig& c, const std::string& fallback) {
  const bool is_gated = c.ffn_kind == FfnKind::gated;
  if (!f.reading()) {
    HfFields act;
    act.value({"name"}, c.activation, c.activation);
    std::string name = act.json()["name"];
    f.write("dense_act_fn", name);
    f.write("is_gated_act", is_gated);
    // "gated-gelu" is how T5 spells gated-gelu_new.
    if (is_gated && c.activation == Activation::gelu_tanh) name = "gelu";
    f.write("feed_forward_proj", (is_gated ? "gated-" : "") + name);
    return;
  }
  const Json* found = f.find("feed_forward_proj");
  std::string projection = fallback;
  if (found && !found->is_null()) {
    if (!found->is_string()) return f.unsupported("feed_forward_proj", *found, "a text");
    projection = found->get<std::string>();
  }
  const bool gated_name = projection.starts_with("gated-");
  std::string name = gated_name ? projection.substr(6) : projection;
  if (projection == "gated-gelu") name = "gelu_new";
  HfFields act(Json{{"feed_forward_proj", name}}, nullptr);
  act.value({"feed_forward_proj"}, c.activation, Activation::relu);
  for (const std::string& problem : act.problems()) f.cannot(problem);
  f.value({"dense_act_fn"}, c.activation, c.activation);
  c.ffn_kind = gated_name ? FfnKind::gated : FfnKind::plain;
  f.choice("is_gated_act", c.ffn_kind, FfnKind::gated, FfnKind::plain, gated_name);
}

// The defaults of a transformers class.
struct Defaults {
  int64_t vocabulary, ffn;
  int layers, heads;
  const char* projection;
  bool tied;
};

void t5_fields_with(HfFields& f, ModelConfig& c, const Defaults& d) {
  f.value({"vocab_size"}, c.vocabulary, d.vocabulary);
  f.value({"d_model"}, c.width, 512);
  f.value({"num_layers"}, c.encoder_layers, d.layers);
  f.value({"num_heads"}, c.heads, d.heads);
  int head_dim = c.head_dim;
  if (head_dim == 0 && c.heads > 0) head_dim = static_cast<int>(c.width / c.heads);
  f.size({"d_kv"}, head_dim, 64);
  if (f.reading()) c.head_dim = head_dim;
  f.value({"d_ff"}, c.ffn, d.ffn);
  if (c.family == Family::encoder_decoder) {
    f.value({"num_decoder_layers"}, c.decoder_layers, c.encoder_layers);
  } else {
    f.find("num_decoder_layers");
    f.always("decoder_layers", c.decoder_layers, 0);
  }
  f.value({"relative_attention_num_buckets"}, c.t5_buckets, 32);
  f.value({"relative_attention_max_distance"}, c.t5_max_distance, 128);
  f.value({"layer_norm_epsilon"}, c.norm_eps, 1e-6f);
  f.value({"n_positions"}, c.max_positions, 512);
  f.dropout("dropout_rate",
            {&c.dropout, &c.embedding_dropout, &c.attention_dropout, &c.activation_dropout}, 0.1f);
  t5_feed_forward(f, c, d.projection);
  if (c.family == Family::encoder_decoder) {
    f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::source_target, d.tied);
  } else {
    f.find("tie_word_embeddings");
  }
  // Tied logits are scaled by 1/√width.
  const bool scaled = c.head == Head::language_model && c.tying == Tying::all && c.width > 0;
  f.always("logits_scale", c.logits_scale,
           scaled ? 1 / std::sqrt(static_cast<float>(c.width)) : 1.0f);
  f.always("target_vocabulary", c.target_vocabulary, 0);
  f.always("decoder_heads", c.decoder_heads, 0);
  f.always("decoder_ffn", c.decoder_ffn, 0);
  f.always("kv_heads", c.kv_heads, 0);
  f.always("position", c.position, Position::t5_bias);
  f.always("norm", c.norm, NormKind::rms_norm);
  f.always("norm_place", c.norm_place, NormPlace::pre);
  f.always("norm_offset", c.norm_offset, 0);
  f.always("final_norm", c.final_norm, true);
  f.always("embedding_norm", c.embedding_norm, false);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_scale", c.attention_scale, 1);
  f.always("attention_soft_cap", c.attention_soft_cap, 0);
  f.always("attention_bias", c.attention_bias, AttentionBias::none);
  f.always("residual", c.residual, Residual::sequential);
  f.always("ffn_bias", c.ffn_bias, false);
  f.always("embedding_scale", c.embedding_scale, EmbeddingScale::none);
  f.always("token_types", c.token_types, 0);
  f.always("output_bias", c.output_bias, false);
  f.always("logits_soft_cap", c.logits_soft_cap, 0);
  f.always("pooler", c.pooler, false);
  if (f.reading()) c.initialisation = Initialisation::t5;
  f.id("pad_token_id", c.pad_id, 0);
  f.id("bos_token_id", c.bos_id, -1);
  f.id("eos_token_id", c.eos_id, 1);
  // Default: the decoder starts with pad_id.
  f.id("decoder_start_token_id", c.decoder_start_id, c.pad_id);
}

void t5_fields(HfFields& f, ModelConfig& c) {
  t5_fields_with(f, c, {32128, 2048, 6, 8, "relu", /*tied=*/true});
}
void mt5_fields(HfFields& f, ModelConfig& c) {
  t5_fields_with(f, c, {250112, 1024, 8, 6, "gated-gelu", /*tied=*/false});
}

void t5_stack(HfNames& n, const std::string& side, bool is_gated) {
  const std::string heed = side + ".{i}.", block = side + ".block.{i}.layer.";
  const std::string self = block + "0.SelfAttention.", cross = block + "1.EncDecAttention.";
  n.tensor(side + ".t5_bias",
           side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  n.norm(heed + "self.norm", block + "0.layer_norm");
  n.linear(heed + "self.qkv", {self + "q", self + "k", self + "v"});
  n.linear(heed + "self.out", {self + "o"});
  n.norm(heed + "cross.norm", block + "1.layer_norm");
  n.linear(heed + "cross.q", {cross + "q"});
  n.linear(heed + "cross.kv", {cross + "k", cross + "v"});
  n.linear(heed + "cross.out", {cross + "o"});
  const std::string ffn = block + (side == "encoder" ? "1." : "2.");
  const std::string dense = ffn + "DenseReluDense.";
  n.norm(heed + "ffn.norm", ffn + "layer_norm");
  if (is_gated) {
    n.linear(heed + "ffn.in", {dense + "wi_0", dense + "wi_1"});
  } else {
    n.linear(heed + "ffn.in", {dense + "wi"});
  }
  n.linear(heed + "ffn.out", {dense + "wo"});
  n.norm(side + ".norm", side + ".final_layer_norm");
}

void t5_names(HfNames& n, const ModelConfig& c) {
  n.tensor("embedding.tokens", "shared.weight").other_names = {"encoder.embed_tokens.weight",
                                                               "decoder.embed_tokens.weight"};
  t5_stack(n, "encoder", c.ffn_kind == FfnKind::gated);
  t5_stack(n, "decoder", c.ffn_kind == FfnKind::gated);
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
}

HfArchitecture t5_like(const char* model_type, std::vector<HfClass> classes,
                       void (*fields)(HfFields&, ModelConfig&)) {
  return {model_type,
          "",
          std::move(classes),
          fields,
          t5_names,
          // The first T5 files have a bias of cross-attention that was never used.
          {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight",
           "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
          {"initializer_factor", "classifier_dropout", "output_past"}};
}

}  // namespace

std::vector<HfArchitecture> hf_t5_family() {
  std::vector<HfArchitecture> family;
  family.push_back(
      t5_like("t5",
              {{"T5ForConditionalGeneration", Head::language_model, Family::encoder_decoder},
               {"T5WithLMHeadModel", Head::language_model, Family::encoder_decoder},
               {"T5Model", Head::none, Family::encoder_decoder},
               {"T5EncoderModel", Head::none, Family::encoder_only}},
              t5_fields));
  family.push_back(
      t5_like("mt5",
              {{"MT5ForConditionalGeneration", Head::language_model, Family::encoder_decoder},
               {"MT5Model", Head::none, Family::encoder_decoder},
               {"MT5EncoderModel", Head::none, Family::encoder_only}},
              mt5_fields));
  return family;
}

}  // namespace heed
