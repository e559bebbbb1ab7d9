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
    EnumName<Position>{Position::alibi, "alibi"},
    EnumName<Position>{Position::kerple, "kerple"}};

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
inline constexpr auto kEnumNames<Activation> = [] {
  std::array<EnumName<Activation>, std::size(kernels::kActivations)> names{};
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = {kernels::kActivations[i].activation, kernels::kActivations[i].name};
  }
  return names;
}();

template <>
inline constexpr std::array kEnumNames<Initialisation>{
    EnumName<Initialisation>{Initialisation::by_family, "by_family"},
    EnumName<Initialisation>{Initialisation::xavier, "xavier"},
    EnumName<Initialisation>{Initialisation::normal, "normal"},
    EnumName<Initialisation>{Initialisation::gpt2, "gpt2"},
    EnumName<Initialisation>{Initialisation::t5, "t5"}};

template <class Config, class Visitor>
void describe(Config& c, Visitor&& visit) {
  visit("family", c.family, "stacks of the model");
  visit("vocabulary", c.vocabulary, "vocabulary size; of the source in encoder_decoder models");
  visit("target_vocabulary", c.target_vocabulary,
        "vocabulary size of the target; 0: as vocabulary");
  visit("width", c.width, "d_model: width of the hidden states");
  visit("encoder_layers", c.encoder_layers, "number of encoder layers");
  visit("decoder_layers", c.decoder_layers, "number of decoder layers");
  visit("heads", c.heads, "number of attention heads");
  visit("decoder_heads", c.decoder_heads, "attention heads of the decoder; 0: as heads");
  visit("kv_heads", c.kv_heads, "key/value heads (GQA, MQA); 0: as heads");
  visit("head_dim", c.head_dim, "width of a head; 0: width / heads");
  visit("ffn", c.ffn, "width of the feed-forward layer");
  visit("decoder_ffn", c.decoder_ffn, "width of the decoder's feed-forward layer; 0: as ffn");
  visit("position", c.position, "position encoding");
  visit("max_positions", c.max_positions, "maximum sequence length");
  visit("sinusoid_layout", c.sinusoid_layout,
        "order of sines and cosines: interleaved, or sines first");
  visit("position_offset", c.position_offset, "rows of the position table before position 0");
  visit("rope_base", c.rope_base, "RoPE: base of the frequencies (theta)");
  visit("rope_fraction", c.rope_fraction, "RoPE: fraction of head_dim that is rotated");
  visit("rope_layout", c.rope_layout, "RoPE: rotated pairs are in both halves, or adjacent");
  visit("rope_scaling", c.rope_scaling, "RoPE: scaling for longer contexts");
  visit("rope_factor", c.rope_factor, "RoPE: scaling factor");
  visit("rope_low_frequency_factor", c.rope_low_frequency_factor, "RoPE, llama3: low_freq_factor");
  visit("rope_high_frequency_factor", c.rope_high_frequency_factor,
        "RoPE, llama3: high_freq_factor");
  visit("rope_original_positions", c.rope_original_positions,
        "RoPE scaling: context length of pretraining");
  visit("t5_buckets", c.t5_buckets, "T5: number of relative position buckets");
  visit("t5_max_distance", c.t5_max_distance, "T5: distances from here on share a bucket");
  visit("norm", c.norm, "kind of norm");
  visit("norm_place", c.norm_place, "norm before, after, or on both sides of a sub-layer");
  visit("final_norm", c.final_norm, "norm after the last layer");
  visit("embedding_norm", c.embedding_norm, "norm after the embedding");
  visit("norm_eps", c.norm_eps, "epsilon of the norms");
  visit("norm_offset", c.norm_offset, "added to gamma (Gemma: 1)");
  visit("norm_bias", c.norm_bias, "layer norms have a beta");
  visit("attention", c.attention, "attention pattern");
  visit("windows", c.windows, "window of each layer, as a repeated pattern; 0: full attention");
  visit("attention_scale", c.attention_scale, "scale of the attention scores; 0: 1/sqrt(head_dim)");
  visit("attention_soft_cap", c.attention_soft_cap, "soft cap of the attention scores; 0: none");
  visit("attention_bias", c.attention_bias, "attention projections with a bias");
  visit("residual", c.residual, "attention and feed-forward in sequence or in parallel");
  visit("activation", c.activation, "activation of the feed-forward layer");
  visit("ffn_kind", c.ffn_kind, "plain, or gated (SwiGLU, GEGLU)");
  visit("ffn_bias", c.ffn_bias, "feed-forward layers have biases");
  visit("tying", c.tying, "embedding matrices that are shared");
  visit("embedding_scale", c.embedding_scale, "scale of the token embeddings");
  visit("token_types", c.token_types, "number of token types (segment embeddings); 0: none");
  visit("output_bias", c.output_bias, "logits have a bias");
  visit("logits_scale", c.logits_scale, "scale of the hidden states before the output matrix");
  visit("logits_soft_cap", c.logits_soft_cap, "soft cap of the logits; 0: none");
  visit("head", c.head, "output head");
  visit("labels", c.labels, "number of classes, or of regression outputs");
  visit("pooling", c.pooling, "pooling of a sequence's hidden states");
  visit("head_activation", c.head_activation,
        "activation of the layer before the output; none: no layer");
  visit("pooler", c.pooler, "BERT's pooler");
  visit("dropout", c.dropout, "dropout of each residual branch");
  visit("attention_dropout", c.attention_dropout, "dropout of the attention probabilities");
  visit("activation_dropout", c.activation_dropout, "dropout inside the feed-forward layer");
  visit("embedding_dropout", c.embedding_dropout, "dropout of the embeddings");
  visit("pad_frozen", c.pad_frozen, "pad_id's embedding gets no gradient as an input");
  visit("initialisation", c.initialisation, "weight initialisation");
  visit("pad_id", c.pad_id, "padding id; -1: none");
  visit("bos_id", c.bos_id, "beginning-of-sequence id; -1: none");
  visit("eos_id", c.eos_id, "end-of-sequence id; -1: none");
  visit("decoder_start_id", c.decoder_start_id, "first decoder input; -1: none");
}

}  // namespace heed
