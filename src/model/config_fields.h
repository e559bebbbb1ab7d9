// The list of ModelConfig's fields and the names of its enumerators. Included by model/config.h.
#pragma once

#include "model/config.h"

namespace heed {

template <>
inline constexpr std::array kEnumNames<Family>{
    EnumName<Family>{Family::encoder_decoder, "encoder_decoder"},
    EnumName<Family>{Family::encoder_only, "encoder_only"},
    EnumName<Family>{Family::decoder_only, "decoder_only"}};

template <>
inline constexpr std::array kEnumNames<Position>{
    EnumName<Position>{Position::none, "none"},
    EnumName<Position>{Position::sinusoidal, "sinusoidal"},
    EnumName<Position>{Position::learned, "learned"},
    EnumName<Position>{Position::rope, "rope"},
    EnumName<Position>{Position::t5_bias, "t5_bias"},
    EnumName<Position>{Position::alibi, "alibi"}};

template <>
inline constexpr std::array kEnumNames<SinusoidLayout>{
    EnumName<SinusoidLayout>{SinusoidLayout::interleaved, "interleaved"},
    EnumName<SinusoidLayout>{SinusoidLayout::half, "half"},
    EnumName<SinusoidLayout>{SinusoidLayout::half_inclusive, "half_inclusive"}};

template <>
inline constexpr std::array kEnumNames<RopeLayout>{
    EnumName<RopeLayout>{RopeLayout::half, "half"},
    EnumName<RopeLayout>{RopeLayout::interleaved, "interleaved"}};

template <>
inline constexpr std::array kEnumNames<RopeScaling>{
    EnumName<RopeScaling>{RopeScaling::none, "none"},
    EnumName<RopeScaling>{RopeScaling::linear, "linear"},
    EnumName<RopeScaling>{RopeScaling::llama3, "llama3"}};

template <>
inline constexpr std::array kEnumNames<NormKind>{
    EnumName<NormKind>{NormKind::layer_norm, "layer_norm"},
    EnumName<NormKind>{NormKind::rms_norm, "rms_norm"}};

template <>
inline constexpr std::array kEnumNames<NormPlace>{EnumName<NormPlace>{NormPlace::pre, "pre"},
                                                  EnumName<NormPlace>{NormPlace::post, "post"},
                                                  EnumName<NormPlace>{NormPlace::both, "both"}};

template <>
inline constexpr std::array kEnumNames<Residual>{
    EnumName<Residual>{Residual::sequential, "sequential"},
    EnumName<Residual>{Residual::parallel, "parallel"}};

template <>
inline constexpr std::array kEnumNames<AttentionSpan>{
    EnumName<AttentionSpan>{AttentionSpan::full, "full"},
    EnumName<AttentionSpan>{AttentionSpan::sliding_window, "sliding_window"},
    EnumName<AttentionSpan>{AttentionSpan::longformer, "longformer"}};

template <>
inline constexpr std::array kEnumNames<AttentionBias>{
    EnumName<AttentionBias>{AttentionBias::none, "none"},
    EnumName<AttentionBias>{AttentionBias::qkv, "qkv"},
    EnumName<AttentionBias>{AttentionBias::out, "out"},
    EnumName<AttentionBias>{AttentionBias::all, "all"}};

template <>
inline constexpr std::array kEnumNames<FfnKind>{EnumName<FfnKind>{FfnKind::plain, "plain"},
                                                EnumName<FfnKind>{FfnKind::gated, "gated"}};

template <>
inline constexpr std::array kEnumNames<Tying>{
    EnumName<Tying>{Tying::none, "none"}, EnumName<Tying>{Tying::target_output, "target_output"},
    EnumName<Tying>{Tying::source_target, "source_target"}, EnumName<Tying>{Tying::all, "all"}};

template <>
inline constexpr std::array kEnumNames<EmbeddingScale>{
    EnumName<EmbeddingScale>{EmbeddingScale::none, "none"},
    EnumName<EmbeddingScale>{EmbeddingScale::sqrt_width, "sqrt_width"}};

template <>
inline constexpr std::array kEnumNames<Head>{
    EnumName<Head>{Head::none, "none"},
    EnumName<Head>{Head::language_model, "language_model"},
    EnumName<Head>{Head::masked_lm, "masked_lm"},
    EnumName<Head>{Head::classifier, "classifier"},
    EnumName<Head>{Head::regression, "regression"},
    EnumName<Head>{Head::token_classifier, "token_classifier"},
    EnumName<Head>{Head::embedding, "embedding"}};

template <>
inline constexpr std::array kEnumNames<Pooling>{EnumName<Pooling>{Pooling::first, "first"},
                                                EnumName<Pooling>{Pooling::last, "last"},
                                                EnumName<Pooling>{Pooling::mean, "mean"}};

template <>
inline constexpr std::array kEnumNames<Activation>{
    EnumName<Activation>{Activation::none, "none"},
    EnumName<Activation>{Activation::relu, "relu"},
    EnumName<Activation>{Activation::gelu, "gelu"},
    EnumName<Activation>{Activation::gelu_tanh, "gelu_tanh"},
    EnumName<Activation>{Activation::silu, "silu"},
    EnumName<Activation>{Activation::tanh, "tanh"}};

template <>
inline constexpr std::array kEnumNames<Initialisation>{
    EnumName<Initialisation>{Initialisation::by_family, "by_family"},
    EnumName<Initialisation>{Initialisation::xavier, "xavier"},
    EnumName<Initialisation>{Initialisation::normal, "normal"},
    EnumName<Initialisation>{Initialisation::gpt2, "gpt2"},
    EnumName<Initialisation>{Initialisation::t5, "t5"}};

template <class Config, class Visitor>
void describe(Config& c, Visitor&& visit) {
  visit("family", c.family, "which stacks there are");
  visit("vocabulary", c.vocabulary, "ids of the source, or of the only text");
  visit("target_vocabulary", c.target_vocabulary, "ids of the target; 0: as the source's");
  visit("width", c.width, "d_model, the width of a row");
  visit("encoder_layers", c.encoder_layers, "layers of the encoder");
  visit("decoder_layers", c.decoder_layers, "layers of the decoder");
  visit("heads", c.heads, "attention heads");
  visit("decoder_heads", c.decoder_heads, "heads of the decoder; 0: as the encoder's");
  visit("kv_heads", c.kv_heads, "key/value heads (GQA, MQA); 0: as many as heads");
  visit("head_dim", c.head_dim, "width of a head; 0: width / heads");
  visit("ffn", c.ffn, "width of the feed-forward layer");
  visit("decoder_ffn", c.decoder_ffn, "the same in the decoder; 0: as the encoder's");
  visit("position", c.position, "how the model knows where a token stands");
  visit("max_positions", c.max_positions, "the longest sequence");
  visit("sinusoid_layout", c.sinusoid_layout, "sines and cosines in turn, or half and half");
  visit("position_offset", c.position_offset, "rows of the table before position 0");
  visit("rope_base", c.rope_base, "RoPE: base of the wavelengths");
  visit("rope_fraction", c.rope_fraction, "RoPE: share of a head that is turned");
  visit("rope_layout", c.rope_layout, "RoPE: which coordinates make a pair");
  visit("rope_scaling", c.rope_scaling, "RoPE: how it is stretched beyond its training");
  visit("rope_factor", c.rope_factor, "RoPE: by how much");
  visit("rope_low_frequency_factor", c.rope_low_frequency_factor, "RoPE, llama3");
  visit("rope_high_frequency_factor", c.rope_high_frequency_factor, "RoPE, llama3");
  visit("rope_original_positions", c.rope_original_positions, "RoPE, llama3: length in training");
  visit("t5_buckets", c.t5_buckets, "T5: buckets of distances");
  visit("t5_max_distance", c.t5_max_distance, "T5: farther is all the same");
  visit("norm", c.norm, "kind of norm");
  visit("norm_place", c.norm_place, "before, after, or on both sides of a sub-layer");
  visit("final_norm", c.final_norm, "a norm after the last layer");
  visit("embedding_norm", c.embedding_norm, "a norm of the embeddings");
  visit("norm_eps", c.norm_eps, "added to the variance");
  visit("norm_offset", c.norm_offset, "added to gamma");
  visit("norm_bias", c.norm_bias, "layer norms have a beta");
  visit("attention", c.attention, "which keys a query sees");
  visit("windows", c.windows, "window of each layer, as a repeated pattern; 0: sees all");
  visit("attention_scale", c.attention_scale, "of the scores; 0: 1/sqrt(head_dim)");
  visit("attention_soft_cap", c.attention_soft_cap, "bound of the scores; 0: none");
  visit("attention_bias", c.attention_bias, "which projections have a bias");
  visit("residual", c.residual, "sub-layers one after the other, or side by side");
  visit("activation", c.activation, "of the feed-forward layer");
  visit("ffn_kind", c.ffn_kind, "plain, or gated (SwiGLU, GEGLU)");
  visit("ffn_bias", c.ffn_bias, "the feed-forward layer has biases");
  visit("tying", c.tying, "which embedding matrices are one");
  visit("embedding_scale", c.embedding_scale, "of the token embeddings");
  visit("token_types", c.token_types, "segment embeddings; 0: none");
  visit("output_bias", c.output_bias, "logits have a bias");
  visit("logits_scale", c.logits_scale, "of the rows before the output matrix");
  visit("logits_soft_cap", c.logits_soft_cap, "bound of the logits; 0: none");
  visit("head", c.head, "what the model answers");
  visit("labels", c.labels, "classes, or values of a regression");
  visit("pooling", c.pooling, "which row stands for a sequence");
  visit("head_activation", c.head_activation, "of the layer before the output; none: no layer");
  visit("pooler", c.pooler, "BERT's pooled first token");
  visit("dropout", c.dropout, "of each residual branch, in training");
  visit("attention_dropout", c.attention_dropout, "of the attention probabilities");
  visit("activation_dropout", c.activation_dropout, "inside the feed-forward layer");
  visit("embedding_dropout", c.embedding_dropout, "of the embeddings");
  visit("pad_frozen", c.pad_frozen, "pad_id's embedding gets no gradient as an input");
  visit("initialisation", c.initialisation, "how weights start");
  visit("pad_id", c.pad_id, "id of padding; -1: none");
  visit("bos_id", c.bos_id, "id that begins a text; -1: none");
  visit("eos_id", c.eos_id, "id that ends a text; -1: none");
  visit("decoder_start_id", c.decoder_start_id, "first input of the decoder; -1: none");
}

}  // namespace heed
