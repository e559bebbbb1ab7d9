// The encoder–decoders of fairseq's line: marian, bart, mbart, pegasus, m2m_100.
#include "model/hugging_face/hf_architectures.h"

namespace heed {
namespace {

struct Variant {
  NormPlace norm_place = NormPlace::post;
  bool embedding_norm = false;
  Position position = Position::sinusoidal;
  SinusoidLayout layout = SinusoidLayout::half;
  bool reorders = false;  // a model with interleaved sinusoids is saved in this layout
  // The defaults of the transformers class.
  int64_t vocabulary = 50265, ffn = 4096;
  int layers = 12;
  Activation activation = Activation::gelu;
  bool scale_embedding = false;
  int pad_id = 1, bos_id = 0, eos_id = 2, decoder_start_id = 2;
};

// The paper's Transformer is a Marian with interleaved sinusoids. It is saved with the width in
// Marian's order (hf_tensor_map.h), so that every reader of Marian models can load it; the key
// heed_sinusoid_layout makes Heed restore the interleaved order.
void reordered_layout(HfFields& f, ModelConfig& c) {
  constexpr const char* kKey = "heed_sinusoid_layout";
  if (!f.reading()) {
    if (c.sinusoid_layout == SinusoidLayout::half_inclusive) return f.cannot("sinusoid_layout");
    if (c.sinusoid_layout == SinusoidLayout::interleaved) f.write(kKey, "interleaved");
    return;
  }
  f.value({kKey}, c.sinusoid_layout, SinusoidLayout::half);
  if (c.sinusoid_layout == SinusoidLayout::half_inclusive) {
    f.unsupported(kKey, "half_inclusive", "interleaved, half");
  }
}

void common_fields(HfFields& f, ModelConfig& c, const Variant& v) {
  f.value({"vocab_size"}, c.vocabulary, v.vocabulary);
  f.value({"d_model"}, c.width, 1024);
  f.value({"encoder_layers"}, c.encoder_layers, v.layers);
  f.value({"decoder_layers"}, c.decoder_layers, v.layers);
  f.value({"encoder_attention_heads"}, c.heads, 16);
  int decoder_heads = c.stack(Side::decoder).heads;
  f.size({"decoder_attention_heads"}, decoder_heads, 16);
  if (f.reading()) c.decoder_heads = decoder_heads;
  f.value({"encoder_ffn_dim"}, c.ffn, v.ffn);
  int64_t decoder_ffn = c.stack(Side::decoder).ffn;
  f.size({"decoder_ffn_dim"}, decoder_ffn, v.ffn);
  if (f.reading()) c.decoder_ffn = decoder_ffn;
  f.value({"max_position_embeddings"}, c.max_positions, 1024);
  f.value({"activation_function"}, c.activation, v.activation);
  f.choice("scale_embedding", c.embedding_scale, EmbeddingScale::sqrt_width, EmbeddingScale::none,
           v.scale_embedding);
  f.dropout("dropout", {&c.dropout, &c.embedding_dropout}, 0.1f);
  f.dropout("attention_dropout", {&c.attention_dropout}, 0);
  f.dropout("activation_dropout", {&c.activation_dropout}, 0);
  f.always("position", c.position, v.position);
  if (v.reorders) {
    reordered_layout(f, c);
  } else if (v.position == Position::sinusoidal) {
    f.always("sinusoid_layout", c.sinusoid_layout, v.layout);
  }
  f.always("norm", c.norm, NormKind::layer_norm);
  f.always("norm_place", c.norm_place, v.norm_place);
  f.always("norm_bias", c.norm_bias, true);
  f.always("norm_eps", c.norm_eps, 1e-5f);
  f.always("final_norm", c.final_norm, v.norm_place == NormPlace::pre);
  f.always("embedding_norm", c.embedding_norm, v.embedding_norm);
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("attention_scale", c.attention_scale, 0);
  f.always("attention_soft_cap", c.attention_soft_cap, 0);
  f.always("attention_bias", c.attention_bias, AttentionBias::all);
  f.always("kv_heads", c.kv_heads, 0);
  f.always("head_dim", c.head_dim, 0);
  f.always("residual", c.residual, Residual::sequential);
  f.always("ffn_kind", c.ffn_kind, FfnKind::plain);
  f.always("ffn_bias", c.ffn_bias, true);
  f.always("token_types", c.token_types, 0);
  f.always("logits_scale", c.logits_scale, 1);
  f.always("logits_soft_cap", c.logits_soft_cap, 0);
  f.always("pooler", c.pooler, false);
  if (f.reading()) c.pad_frozen = true;
  // The bias of the logits is a buffer that files may leave out.
  if (f.reading()) c.output_bias = f.has_tensor("final_logits_bias");
  f.id("pad_token_id", c.pad_id, v.pad_id);
  f.id("bos_token_id", c.bos_id, v.bos_id);
  f.id("eos_token_id", c.eos_id, v.eos_id);
  f.id("decoder_start_token_id", c.decoder_start_id, v.decoder_start_id);
  // Fields of older files.
  f.expect("normalize_before", v.norm_place == NormPlace::pre);
  f.expect("add_final_layer_norm", v.norm_place == NormPlace::pre);
  f.expect("normalize_embedding", v.embedding_norm);
  f.expect("static_position_embeddings", v.position == Position::sinusoidal);
}

// Source and target share one matrix, which is also the output matrix unless untied.
void shared_embeddings(HfFields& f, ModelConfig& c) {
  f.always("target_vocabulary", c.target_vocabulary, 0);
  f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::source_target, true);
}

void marian_fields(HfFields& f, ModelConfig& c) {
  common_fields(f, c,
                {.reorders = true,
                 .vocabulary = 58101,
                 .pad_id = 58100,
                 .bos_id = -1,
                 .eos_id = 0,
                 .decoder_start_id = 58100});
  f.always("position_offset", c.position_offset, 0);
  int64_t target = c.output_vocabulary();
  f.size({"decoder_vocab_size"}, target, c.vocabulary);
  if (f.reading()) c.target_vocabulary = target;
  bool shared = c.tying == Tying::all || c.tying == Tying::source_target;
  bool tied = c.tying == Tying::all || c.tying == Tying::target_output;
  f.value({"share_encoder_decoder_embeddings"}, shared, true);
  f.value({"tie_word_embeddings"}, tied, true);
  if (!f.reading()) return;
  if (shared) {
    c.tying = tied ? Tying::all : Tying::source_target;
  } else {
    c.tying = tied ? Tying::target_output : Tying::none;
  }
}

void bart_fields(HfFields& f, ModelConfig& c) {
  common_fields(f, c, {.embedding_norm = true, .position = Position::learned});
  f.always("position_offset", c.position_offset, 2);
  shared_embeddings(f, c);
}

void mbart_fields(HfFields& f, ModelConfig& c) {
  common_fields(f, c,
                {.norm_place = NormPlace::pre,
                 .embedding_norm = true,
                 .position = Position::learned,
                 .decoder_start_id = -1});
  f.always("position_offset", c.position_offset, 2);
  shared_embeddings(f, c);
}

void pegasus_fields(HfFields& f, ModelConfig& c) {
  common_fields(f, c,
                {.norm_place = NormPlace::pre,
                 .pad_id = 0,
                 .bos_id = -1,
                 .eos_id = 1,
                 .decoder_start_id = 0});
  f.always("position_offset", c.position_offset, 0);
  shared_embeddings(f, c);
}

void m2m_100_fields(HfFields& f, ModelConfig& c) {
  common_fields(f, c,
                {.norm_place = NormPlace::pre,
                 .layout = SinusoidLayout::half_inclusive,
                 .vocabulary = 128112,
                 .activation = Activation::relu,
                 .scale_embedding = true});
  // Positions start at pad_id + 1.
  f.always("position_offset", c.position_offset, c.pad_id + 1);
  f.always("output_bias", c.output_bias, false);
  shared_embeddings(f, c);
}

void bart_stack(HfNames& n, const std::string& side) {
  const std::string heed = side + ".{i}.", layer = side + ".layers.{i}.";
  const std::string self = layer + "self_attn.", cross = layer + "encoder_attn.";
  n.linear(heed + "self.qkv", {self + "q_proj", self + "k_proj", self + "v_proj"});
  n.linear(heed + "self.out", {self + "out_proj"});
  n.norm(heed + "self.norm", layer + "self_attn_layer_norm");
  n.linear(heed + "cross.q", {cross + "q_proj"});
  n.linear(heed + "cross.kv", {cross + "k_proj", cross + "v_proj"});
  n.linear(heed + "cross.out", {cross + "out_proj"});
  n.norm(heed + "cross.norm", layer + "encoder_attn_layer_norm");
  n.linear(heed + "ffn.in", {layer + "fc1"});
  n.linear(heed + "ffn.out", {layer + "fc2"});
  n.norm(heed + "ffn.norm", layer + "final_layer_norm");
  n.norm(side + ".norm", side + ".layer_norm");
}

void bart_names(HfNames& n, const ModelConfig& c) {
  if (c.tying == Tying::all || c.tying == Tying::source_target) {
    n.tensor("embedding.tokens", "shared.weight").other_names = {"encoder.embed_tokens.weight",
                                                                 "decoder.embed_tokens.weight"};
  } else {
    n.tensor("embedding.tokens", "encoder.embed_tokens.weight");
    n.tensor("target.tokens", "decoder.embed_tokens.weight");
  }
  n.tensor("embedding.positions", "encoder.embed_positions.weight");
  n.tensor("target.positions", "decoder.embed_positions.weight");
  n.norm("embedding.norm", "encoder.layernorm_embedding");
  n.norm("target.norm", "decoder.layernorm_embedding");
  bart_stack(n, "encoder");
  bart_stack(n, "decoder");
  n.begin_head();
  n.tensor("output.weight", "lm_head.weight");
  HfName& bias = n.tensor("output.bias", "final_logits_bias");
  bias.layout = HfLayout::one_row;
  bias.optional = true;
}

// Marian and Pegasus save the sinusoids as tensors.
void sinusoidal_names(HfNames& n, const ModelConfig& c) {
  n.tensor("", "encoder.embed_positions.weight").layout = HfLayout::sinusoids;
  n.tensor("", "decoder.embed_positions.weight").layout = HfLayout::sinusoids;
  bart_names(n, c);
}

HfArchitecture bart_like(const char* model_type, std::vector<HfClass> classes,
                         void (*fields)(HfFields&, ModelConfig&),
                         void (*names)(HfNames&, const ModelConfig&)) {
  return {model_type,
          "model.",
          std::move(classes),
          fields,
          names,
          {"*shared.weight", "*encoder.embed_tokens.weight", "*decoder.embed_tokens.weight",
           "lm_head.weight", "*embed_positions.weights", "*embed_positions._float_tensor"},
          {"encoder_layerdrop", "decoder_layerdrop", "layerdrop", "init_std", "classifier_dropout",
           "classif_dropout", "num_hidden_layers", "_num_labels", "add_bias_logits",
           "extra_pos_embeddings", "force_bos_token_to_be_generated", "output_past",
           "max_source_positions", "max_target_positions", "do_blenderbot_90_layernorm"}};
}

std::vector<HfClass> seq2seq_classes(const char* with_head, const char* model) {
  return {{with_head, Head::language_model, Family::encoder_decoder},
          {model, Head::none, Family::encoder_decoder}};
}

}  // namespace

std::vector<HfArchitecture> hf_bart_family() {
  std::vector<HfArchitecture> family;
  family.push_back(bart_like("marian", seq2seq_classes("MarianMTModel", "MarianModel"),
                             marian_fields, sinusoidal_names));
  family.push_back(bart_like("bart", seq2seq_classes("BartForConditionalGeneration", "BartModel"),
                             bart_fields, bart_names));
  family.push_back(bart_like("mbart",
                             seq2seq_classes("MBartForConditionalGeneration", "MBartModel"),
                             mbart_fields, bart_names));
  family.push_back(bart_like("pegasus",
                             seq2seq_classes("PegasusForConditionalGeneration", "PegasusModel"),
                             pegasus_fields, sinusoidal_names));
  family.push_back(bart_like("m2m_100",
                             seq2seq_classes("M2M100ForConditionalGeneration", "M2M100Model"),
                             m2m_100_fields, bart_names));
  return family;
}

}  // namespace heed
