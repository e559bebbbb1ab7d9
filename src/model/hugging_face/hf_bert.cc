// BERT and its descendants: bert, roberta, xlm-roberta, longformer, distilbert.
#include <algorithm>

#include "model/hugging_face/hf_architectures.h"

namespace heed {
namespace {

// Encoders with a norm after each sub-layer and one over the embeddings.
void encoder_basics(HfFields& f, ModelConfig& c) {
  f.always("decoder_layers", c.decoder_layers, 0);
  if (f.reading()) c.pad_frozen = true;
  f.always("position", c.position, Position::learned);
  f.always("norm", c.norm, NormKind::layer_norm);
  f.always("norm_place", c.norm_place, NormPlace::post);
  f.always("norm_bias", c.norm_bias, true);
  f.always("final_norm", c.final_norm, false);
  f.always("embedding_norm", c.embedding_norm, true);
  f.always("attention_bias", c.attention_bias, AttentionBias::all);
  f.always("attention_scale", c.attention_scale, 0);
  f.always("attention_soft_cap", c.attention_soft_cap, 0);
  f.always("residual", c.residual, Residual::sequential);
  f.always("ffn_kind", c.ffn_kind, FfnKind::plain);
  f.always("ffn_bias", c.ffn_bias, true);
  f.always("embedding_scale", c.embedding_scale, EmbeddingScale::none);
  f.always("logits_scale", c.logits_scale, 1);
  f.always("logits_soft_cap", c.logits_soft_cap, 0);
  f.always("pooling", c.pooling, Pooling::first);
  f.always("kv_heads", c.kv_heads, 0);
  f.always("head_dim", c.head_dim, 0);
  f.always("output_bias", c.output_bias, c.head == Head::masked_lm);
  if (c.head == Head::masked_lm)
    f.choice("tie_word_embeddings", c.tying, Tying::all, Tying::none, true);
  f.expect("is_decoder", false);
  f.expect("add_cross_attention", false);
}

bool is_classifier(const ModelConfig& c) {
  return c.head == Head::classifier || c.head == Head::regression;
}

void bert_sizes(HfFields& f, ModelConfig& c) {
  f.value({"vocab_size"}, c.vocabulary, 30522);
  f.value({"hidden_size"}, c.width, 768);
  f.value({"num_hidden_layers"}, c.encoder_layers, 12);
  f.value({"num_attention_heads"}, c.heads, 12);
  f.value({"intermediate_size"}, c.ffn, 3072);
  f.value({"hidden_act"}, c.activation, Activation::gelu);
  f.size({"type_vocab_size"}, c.token_types, 2);
  if (!f.reading() && c.token_types == 0) f.cannot("token_types");  // transformers looks one up
  f.value({"layer_norm_eps"}, c.norm_eps, 1e-12f);
  f.dropout("hidden_dropout_prob", {&c.dropout, &c.embedding_dropout}, 0.1f);
  f.dropout("attention_probs_dropout_prob", {&c.attention_dropout}, 0.1f);
  if (f.reading()) c.activation_dropout = 0;
  f.expect("position_embedding_type", "absolute");
}

void bert_fields(HfFields& f, ModelConfig& c) {
  encoder_basics(f, c);
  bert_sizes(f, c);
  f.always("attention", c.attention, AttentionSpan::full);
  f.value({"max_position_embeddings"}, c.max_positions, 512);
  f.always("position_offset", c.position_offset, 0);
  f.always("head_activation", c.head_activation, Activation::none);
  // A classifier has a pooler. A base model has one if its weights are in the file, a masked language
  // model if those of the next-sentence head are.
  if (f.reading()) {
    const bool bare = c.head == Head::none && f.has_tensor("pooler.dense.weight");
    const bool pairs = c.head == Head::masked_lm && f.has_tensor("cls.seq_relationship.weight");
    c.pooler = is_classifier(c) || bare || pairs;
  } else if (is_classifier(c) ? !c.pooler : c.pooler && c.head == Head::token_classifier) {
    f.cannot("pooler");
  }
  f.id("pad_token_id", c.pad_id, 0);
  f.id("bos_token_id", c.bos_id, -1);
  f.id("eos_token_id", c.eos_id, -1);
}

// RoBERTa's positions start at pad_id + 1, and its heads have an additional dense layer.
void roberta_basics(HfFields& f, ModelConfig& c) {
  encoder_basics(f, c);
  bert_sizes(f, c);
  f.id("pad_token_id", c.pad_id, 1);
  f.id("bos_token_id", c.bos_id, 0);
  f.id("eos_token_id", c.eos_id, 2);
  f.always("position_offset", c.position_offset, c.pad_id + 1);
  int64_t rows = c.max_positions + c.position_offset;
  f.value({"max_position_embeddings"}, rows, 512);
  if (f.reading()) c.max_positions = rows - c.position_offset;
  Activation head = Activation::none;
  if (is_classifier(c)) head = Activation::tanh;
  // Whatever hidden_act is, the layer before the vocabulary is a gelu.
  if (c.head == Head::masked_lm && c.activation != Activation::gelu) head = Activation::gelu;
  f.always("head_activation", c.head_activation, head);
  if (f.reading()) {
    c.pooler = c.head == Head::none && f.has_tensor("pooler.dense.weight");
  } else if (c.pooler && c.head != Head::none) {
    f.cannot("pooler");
  }
}

void roberta_fields(HfFields& f, ModelConfig& c) {
  roberta_basics(f, c);
  f.always("attention", c.attention, AttentionSpan::full);
}

// attention_window counts both sides; Heed's windows count one.
void longformer_fields(HfFields& f, ModelConfig& c) {
  roberta_basics(f, c);
  if (!f.reading()) {
    if (c.attention != AttentionSpan::longformer) return f.cannot("attention");
    Json windows = Json::array();
    for (int i = 0; i < c.encoder_layers; ++i) windows.push_back(2 * window_of(c, i));
    return f.write("attention_window", windows);
  }
  std::vector<int64_t> windows{512};
  if (const Json* found = f.find("attention_window"); found && !found->is_null()) {
    int64_t one = 0;
    const bool read = read_value(*found, one).empty() ? (windows = {one}, true)
                                                      : read_value(*found, windows).empty();
    const size_t layers = static_cast<size_t>(std::max(c.encoder_layers, 0));
    bool fine = read && (windows.size() == 1 || windows.size() == layers);
    for (const int64_t w : windows) fine = fine && w > 0 && w % 2 == 0;
    if (!fine) {
      f.unsupported("attention_window", *found, "one even number, or one for each layer");
      return;
    }
  }
  for (int64_t& w : windows) w /= 2;
  c.attention = AttentionSpan::longformer;
  c.windows = shortest_pattern(windows, c.encoder_layers);
}

void distilbert_fields(HfFields& f, ModelConfig& c) {
  encoder_basics(f, c);
  f.value({"vocab_size"}, c.vocabulary, 30522);
  f.value({"dim"}, c.width, 768);
  f.value({"n_layers"}, c.encoder_layers, 6);
  f.value({"n_heads"}, c.heads, 12);
  f.value({"hidden_dim"}, c.ffn, 3072);
  f.value({"activation"}, c.activation, Activation::gelu);
  f.value({"max_position_embeddings"}, c.max_positions, 512);
  f.dropout("dropout", {&c.dropout, &c.embedding_dropout}, 0.1f);
  f.dropout("attention_dropout", {&c.attention_dropout}, 0.1f);
  if (f.reading()) c.activation_dropout = 0;
  f.always("attention", c.attention, AttentionSpan::full);
  f.always("position_offset", c.position_offset, 0);
  f.always("token_types", c.token_types, 0);
  f.always("norm_eps", c.norm_eps, 1e-12f);
  f.always("pooler", c.pooler, false);
  f.always("head_activation", c.head_activation,
           is_classifier(c) ? Activation::relu : Activation::none);
  f.id("pad_token_id", c.pad_id, 0);
  f.id("bos_token_id", c.bos_id, -1);
  f.id("eos_token_id", c.eos_id, -1);
}

void bert_body(HfNames& n) {
  n.tensor("embedding.tokens", "embeddings.word_embeddings.weight");
  n.tensor("embedding.positions", "embeddings.position_embeddings.weight");
  n.tensor("embedding.token_types", "embeddings.token_type_embeddings.weight");
  n.norm("embedding.norm", "embeddings.LayerNorm");
  const std::string heed = "encoder.{i}.", layer = "encoder.layer.{i}.";
  const std::string self = layer + "attention.self.";
  n.linear(heed + "self.qkv", {self + "query", self + "key", self + "value"});
  n.linear(heed + "global.qkv",
           {self + "query_global", self + "key_global", self + "value_global"});
  n.linear(heed + "self.out", {layer + "attention.output.dense"});
  n.norm(heed + "self.norm", layer + "attention.output.LayerNorm");
  n.linear(heed + "ffn.in", {layer + "intermediate.dense"});
  n.linear(heed + "ffn.out", {layer + "output.dense"});
  n.norm(heed + "ffn.norm", layer + "output.LayerNorm");
  n.linear("pooler", {"pooler.dense"});
}

void bert_names(HfNames& n, const ModelConfig&) {
  bert_body(n);
  n.begin_head();
  n.linear("head.dense", {"cls.predictions.transform.dense"});
  n.norm("head.norm", "cls.predictions.transform.LayerNorm");
  n.tensor("output.weight", "cls.predictions.decoder.weight");
  n.tensor("output.bias", "cls.predictions.bias").other_names = {"cls.predictions.decoder.bias"};
  n.linear("head.output", {"classifier"});
  n.linear("next_sentence", {"cls.seq_relationship"});
}

void roberta_names(HfNames& n, const ModelConfig& c) {
  bert_body(n);
  n.begin_head();
  n.linear("head.dense", {is_classifier(c) ? "classifier.dense" : "lm_head.dense"});
  n.norm("head.norm", "lm_head.layer_norm");
  n.tensor("output.weight", "lm_head.decoder.weight");
  n.tensor("output.bias", "lm_head.bias").other_names = {"lm_head.decoder.bias"};
  n.linear("head.output", {is_classifier(c) ? "classifier.out_proj" : "classifier"});
}

void distilbert_names(HfNames& n, const ModelConfig& c) {
  n.tensor("embedding.tokens", "embeddings.word_embeddings.weight");
  n.tensor("embedding.positions", "embeddings.position_embeddings.weight");
  n.norm("embedding.norm", "embeddings.LayerNorm");
  const std::string heed = "encoder.{i}.", layer = "transformer.layer.{i}.";
  const std::string self = layer + "attention.";
  n.linear(heed + "self.qkv", {self + "q_lin", self + "k_lin", self + "v_lin"});
  n.linear(heed + "self.out", {self + "out_lin"});
  n.norm(heed + "self.norm", layer + "sa_layer_norm");
  n.linear(heed + "ffn.in", {layer + "ffn.lin1"});
  n.linear(heed + "ffn.out", {layer + "ffn.lin2"});
  n.norm(heed + "ffn.norm", layer + "output_layer_norm");
  n.begin_head();
  n.linear("head.dense", {is_classifier(c) ? "pre_classifier" : "vocab_transform"});
  n.norm("head.norm", "vocab_layer_norm");
  n.linear("output", {"vocab_projector"});
  n.linear("head.output", {"classifier"});
}

std::vector<HfClass> encoder_classes(const char* model, const char* masked_lm,
                                     const char* classifier, const char* tagger) {
  return {{model, Head::none, Family::encoder_only},
          {masked_lm, Head::masked_lm, Family::encoder_only},
          {classifier, Head::classifier, Family::encoder_only},
          {tagger, Head::token_classifier, Family::encoder_only}};
}

const std::vector<std::string> kBertBuffers{"*position_ids",        "*token_type_ids",
                                            "*pooler.dense.*",      "cls.predictions.decoder.*",
                                            "cls.predictions.bias", "cls.seq_relationship.*",
                                            "lm_head.decoder.*",    "lm_head.bias"};

}  // namespace

std::vector<HfArchitecture> hf_bert_family() {
  const std::vector<std::string> bert_ignored{"classifier_dropout",   "layer_norm_type",
                                              "pooler_fc_size",       "pooler_num_attention_heads",
                                              "pooler_num_fc_layers", "pooler_size_per_head",
                                              "pooler_type",          "directionality",
                                              "onnx_export",          "attention_mode",
                                              "ignore_attention_mask"};
  std::vector<HfArchitecture> family;
  auto classes = encoder_classes("BertModel", "BertForMaskedLM", "BertForSequenceClassification",
                                 "BertForTokenClassification");
  classes.push_back({"BertForPreTraining", Head::masked_lm, Family::encoder_only});
  family.push_back(
      {"bert", "bert.", std::move(classes), bert_fields, bert_names, kBertBuffers, bert_ignored});
  family.push_back(
      {"roberta", "roberta.",
       encoder_classes("RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification",
                       "RobertaForTokenClassification"),
       roberta_fields, roberta_names, kBertBuffers, bert_ignored});
  family.push_back(
      {"xlm-roberta", "roberta.",
       encoder_classes("XLMRobertaModel", "XLMRobertaForMaskedLM",
                       "XLMRobertaForSequenceClassification", "XLMRobertaForTokenClassification"),
       roberta_fields, roberta_names, kBertBuffers, bert_ignored});
  family.push_back(
      {"longformer", "longformer.",
       encoder_classes("LongformerModel", "LongformerForMaskedLM",
                       "LongformerForSequenceClassification", "LongformerForTokenClassification"),
       longformer_fields, roberta_names, kBertBuffers, bert_ignored});
  family.push_back(
      {"distilbert",
       "distilbert.",
       encoder_classes("DistilBertModel", "DistilBertForMaskedLM",
                       "DistilBertForSequenceClassification", "DistilBertForTokenClassification"),
       distilbert_fields,
       distilbert_names,
       {"*position_ids", "vocab_projector.weight"},
       // With sinusoidal_pos_embds the table is still in the file.
       {"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_",
        "output_past"}});
  return family;
}

}  // namespace heed
