#include "model/hugging_face/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "heed/error.h"
#include "model/files/safetensors.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "heed_hf_" + test_name()) {
    static int count = 0;
    path_ += "_" + std::to_string(count++);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  static std::string test_name() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + test->name();
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
  }
  std::string path_;
};

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
};

// Tensors of these names, all zero.
TensorFile file_of(const std::vector<Tensor>& tensors, DType dtype = DType::f32) {
  const TemporaryFolder folder;
  std::vector<TensorView> views;
  const std::vector<std::byte> zeros(size_t{1} << 16);
  for (const Tensor& t : tensors) {
    const auto bytes = static_cast<size_t>(checked_byte_count(t.shape, dtype).value());
    views.push_back({t.name, dtype, t.shape, std::span(zeros).first(bytes)});
  }
  write_safetensors(folder.path() + "/model.safetensors", views);
  return TensorFile::open(folder.path());
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// ---- every architecture: config.json → model → folder → model --------------------------------

struct Case {
  const char* name;
  const char* config;
};

const Case kCases[] = {
    {"xlm_roberta_classifier", R"({"model_type": "xlm-roberta", "vocab_size": 30,
      "architectures": ["XLMRobertaForSequenceClassification"], "hidden_size": 12,
      "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 20,
      "max_position_embeddings": 18, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
      "pad_token_id": 1, "id2label": {"0": "bad", "1": "fair", "2": "good"},
      "label2id": {"bad": 0, "fair": 1, "good": 2}})"},
    {"roberta_regression", R"({"model_type": "roberta", "vocab_size": 30, "num_labels": 1,
      "architectures": ["RobertaForSequenceClassification"], "hidden_size": 12,
      "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 20,
      "max_position_embeddings": 18, "type_vocab_size": 1, "id2label": {"0": "score"}})"},
    {"roberta_relu_mlm", R"({"model_type": "roberta", "vocab_size": 30, "hidden_act": "relu",
      "architectures": ["RobertaForMaskedLM"], "hidden_size": 12, "num_hidden_layers": 1,
      "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 18,
      "type_vocab_size": 1})"},
    {"distilbert_classifier", R"({"model_type": "distilbert", "vocab_size": 30,
      "architectures": ["DistilBertForSequenceClassification"], "dim": 12, "n_layers": 2,
      "n_heads": 4, "hidden_dim": 20, "max_position_embeddings": 9,
      "problem_type": "single_label_classification"})"},
    {"longformer_one_window", R"({"model_type": "longformer", "vocab_size": 30,
      "architectures": ["LongformerForTokenClassification"], "hidden_size": 12,
      "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 20,
      "max_position_embeddings": 34, "attention_window": 6,
      "id2label": {"0": "O", "1": "B"}})"},
    {"gpt2_wide", R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 12,
      "vocab_size": 31, "n_layer": 3, "n_head": 2, "n_positions": 9, "n_inner": 17,
      "activation_function": "relu", "scale_attn_weights": false,
      "tie_word_embeddings": false})"},
    {"gpt_neo_odd", R"({"model_type": "gpt_neo", "architectures": ["GPTNeoForCausalLM"],
      "hidden_size": 12, "vocab_size": 31, "num_layers": 5, "num_heads": 2,
      "max_position_embeddings": 9, "window_size": 3,
      "attention_types": [[["global", "local"], 2], [["local"], 1]]})"},
    {"gpt_neox", R"({"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 2, "num_attention_heads": 3,
      "intermediate_size": 20, "rotary_pct": 0.5, "rotary_emb_base": 5000,
      "use_parallel_residual": true, "max_position_embeddings": 40})"},
    {"gpt_neox_sequential", R"({"model_type": "gpt_neox", "architectures": ["GPTNeoXModel"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 2, "num_attention_heads": 3,
      "intermediate_size": 20, "use_parallel_residual": false, "attention_bias": false})"},
    {"bloom_six_heads", R"({"model_type": "bloom", "architectures": ["BloomForCausalLM"],
      "n_embed": 24, "vocab_size": 31, "num_hidden_layers": 2, "num_attention_heads": 6})"},
    {"llama3", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 2, "num_attention_heads": 6,
      "num_key_value_heads": 2, "head_dim": 6, "intermediate_size": 20, "attention_bias": true,
      "mlp_bias": true, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "eos_token_id": [7, 8], "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 64}})"},
    {"llama_linear", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 1, "num_attention_heads": 6,
      "intermediate_size": 20, "rope_scaling": {"type": "linear", "factor": 2.0}})"},
    {"llama_yarn", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 1, "num_attention_heads": 6,
      "intermediate_size": 20, "max_position_embeddings": 256, "rope_scaling": {"rope_type": "yarn",
      "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32}})"},
    {"mistral_without_window", R"({"model_type": "mistral", "sliding_window": null,
      "architectures": ["MistralForCausalLM"], "hidden_size": 24, "vocab_size": 31,
      "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3,
      "intermediate_size": 20})"},
    {"qwen2", R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 3, "num_attention_heads": 6,
      "num_key_value_heads": 2, "intermediate_size": 20, "use_sliding_window": true,
      "sliding_window": 5, "max_window_layers": 2, "rope_theta": 1000000.0,
      "tie_word_embeddings": true})"},
    {"gemma2", R"({"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"],
      "hidden_size": 24, "vocab_size": 31, "num_hidden_layers": 3, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 20, "sliding_window": 4,
      "query_pre_attn_scalar": 12, "hidden_activation": "gelu_pytorch_tanh",
      "hidden_act": "gelu_pytorch_tanh", "cache_implementation": "hybrid"})"},
    {"t5_encoder", R"({"model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": 24,
      "vocab_size": 31, "num_layers": 2, "num_heads": 3, "d_kv": 5, "d_ff": 20,
      "feed_forward_proj": "gated-silu"})"},
    {"mt5_tied", R"({"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"],
      "d_model": 24, "vocab_size": 31, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 3,
      "d_kv": 8, "d_ff": 20, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": true})"},
    {"marian_two_vocabularies", R"({"model_type": "marian", "architectures": ["MarianMTModel"],
      "d_model": 24, "vocab_size": 31, "decoder_vocab_size": 37, "encoder_layers": 2,
      "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 3,
      "encoder_ffn_dim": 20, "decoder_ffn_dim": 28, "max_position_embeddings": 16,
      "pad_token_id": 30, "decoder_start_token_id": 30, "scale_embedding": true,
      "share_encoder_decoder_embeddings": false, "activation_function": "relu"})"},
    {"bart_untied", R"({"model_type": "bart", "tie_word_embeddings": false,
      "architectures": ["BartForConditionalGeneration"], "d_model": 24, "vocab_size": 31,
      "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
      "decoder_attention_heads": 2, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20,
      "max_position_embeddings": 16, "normalize_embedding": true})"},
    {"pegasus", R"({"model_type": "pegasus", "architectures": ["PegasusForConditionalGeneration"],
      "d_model": 24, "vocab_size": 31, "encoder_layers": 1, "decoder_layers": 2,
      "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 20,
      "decoder_ffn_dim": 20, "max_position_embeddings": 16, "scale_embedding": true,
      "activation_function": "relu"})"},
    {"opt_post", R"({"model_type": "opt", "architectures": ["OPTModel"], "hidden_size": 12,
      "vocab_size": 31, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 20,
      "max_position_embeddings": 9, "do_layer_norm_before": false, "word_embed_proj_dim": 12,
      "enable_bias": false})"},
    {"m2m_100", R"({"model_type": "m2m_100", "architectures": ["M2M100ForConditionalGeneration"],
      "d_model": 24, "vocab_size": 31, "encoder_layers": 1, "decoder_layers": 2,
      "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 20,
      "decoder_ffn_dim": 20, "max_position_embeddings": 16, "encoder_layerdrop": 0.05})"},
};

class HuggingFace : public testing::TestWithParam<Case> {};

TEST_P(HuggingFace, ConfigAndTensorsComeBackTheSame) {
  const json original = json::parse(GetParam().config);
  const HfConfig hf = hf_read_config(GetParam().config, "config.json", file_of({}));
  EXPECT_EQ(hf.model_type, original["model_type"]);
  EXPECT_EQ(hf.architecture, original["architectures"][0]);

  const Network model(hf.config, /*seed=*/7);
  EXPECT_NE(model.hugging_face().model_type, "heed");
  const TemporaryFolder folder;
  model.save(folder.path());
  const Network again = Network::load(folder.path());
  EXPECT_EQ(again.hugging_face().model_type, model.hugging_face().model_type);
  EXPECT_THAT(again.parameters().all_values().size(), model.parameters().all_values().size());
  for (const ParameterSpec& spec : model.parameters().specs()) {
    EXPECT_THAT(again.parameters().values(spec.name),
                testing::ElementsAreArray(model.parameters().values(spec.name)))
        << spec.name;
  }
  // As the architecture that it came from, the config is the same to the last field.
  const std::string text = hf_write_config(hf);
  EXPECT_EQ(hf_read_config(text, "written", file_of({})).config, hf.config) << text;
}

INSTANTIATE_TEST_SUITE_P(Architectures, HuggingFace, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- what a config.json may not say ------------------------------------------------------------

std::string config_error(const std::string& text) {
  return message_of([&] { hf_read_config(text, "config.json", file_of({})); });
}

TEST(HuggingFaceConfig, NamesEveryUnknownField) {
  EXPECT_THAT(config_error(R"({"model_type": "bert", "flux": 1, "hidden_size": 8, "warp": 2})"),
              HasSubstr("unknown or unsupported fields flux, warp"));
}

TEST(HuggingFaceConfig, SaysWhatIsSupportedInstead) {
  EXPECT_THAT(config_error(R"({"model_type": "bert", "position_embedding_type": "relative_key"})"),
              AllOf(HasSubstr("position_embedding_type is \"relative_key\""),
                    HasSubstr("supported: \"absolute\"")));
  EXPECT_THAT(config_error(R"({"model_type": "bert", "hidden_act": "quick_gelu"})"),
              AllOf(HasSubstr("hidden_act is \"quick_gelu\""), HasSubstr("gelu_new")));
  EXPECT_THAT(config_error(R"({"model_type": "llama", "rope_scaling": {"rope_type": "longrope"}})"),
              AllOf(HasSubstr("rope_scaling is"), HasSubstr("llama3")));
  EXPECT_THAT(config_error(R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn",
      "factor": 4.0, "beta_fast": 16}})"),
              HasSubstr("beta_fast 32"));
  for (const char* type : {"mistral", "qwen2", "gemma2"}) {
    EXPECT_THAT(
        config_error(R"({"sliding_window": -3, "model_type": ")" + std::string(type) + R"("})"),
        HasSubstr("sliding_window is -3, supported: null or a number of positions"));
  }
  EXPECT_THAT(config_error(R"({"model_type": "opt", "word_embed_proj_dim": 512})"),
              HasSubstr("word_embed_proj_dim is 512, supported: 768"));
  EXPECT_THAT(config_error(R"({"model_type": "mamba"})"),
              AllOf(HasSubstr("model_type is \"mamba\""), HasSubstr("gpt_neox")));
  EXPECT_THAT(config_error(R"({"model_type": "bert", "architectures": ["BertForPainting"]})"),
              AllOf(HasSubstr("BertForPainting"), HasSubstr("BertForMaskedLM")));
  EXPECT_THAT(config_error(R"({"model_type": "gpt2", "n_embd": "wide"})"),
              HasSubstr("n_embd is \"wide\""));
}

TEST(HuggingFaceConfig, RefusesNonsense) {
  EXPECT_THAT(config_error("[1, 2]"), HasSubstr("not a JSON object"));
  // Printing it would need more stack than there is.
  const std::string deep(1000000, '['), end(1000000, ']');
  EXPECT_THAT(config_error(R"({"model_type": "bert", "hidden_size": )" + deep + end + "}"),
              HasSubstr("not a JSON object"));
  EXPECT_THAT(config_error(R"({"model_type": "bert", "a[[\\\"": "[", "hidden_act": "x"})"),
              HasSubstr("hidden_act"));
  EXPECT_THAT(config_error(R"({"model_type": "gpt2", "n_head": 0})"),
              HasSubstr("heads must be positive, got 0"));
  EXPECT_THAT(config_error(R"({"model_type": "gpt2", "n_layer": 1000000})"),
              HasSubstr("decoder_layers must be at most 10000, got 1000000"));
  EXPECT_THAT(config_error(R"({"model_type": "gpt2", "n_embd": 99999999999999999999})"),
              HasSubstr("n_embd"));
  EXPECT_THAT(config_error(R"({"model_type": "gpt_neo", "attention_types": [[["global"], 7]]})"),
              HasSubstr("attention_types"));
}

// What Hugging Face has no model for is written whole, under Heed's own names.
TEST(HuggingFaceConfig, WritesWhatHasNoEquivalentAsHeed) {
  ModelConfig c;
  c.vocabulary = 20, c.width = 8, c.heads = 2, c.ffn = 12;
  c.encoder_layers = 1, c.decoder_layers = 2;
  c.position = Position::rope, c.norm_place = NormPlace::pre, c.final_norm = true;
  const Network model(c, 3);
  EXPECT_EQ(model.hugging_face().model_type, "heed");
  const TemporaryFolder folder;
  model.save(folder.path());
  const Network again = Network::load(folder.path());
  EXPECT_EQ(again.config(), c);
  EXPECT_TRUE(std::ranges::equal(again.parameters().values("decoder.1.cross.kv.weight"),
                                 model.parameters().values("decoder.1.cross.kv.weight")));
}

// The hidden states of a decoder, with its encoder.
std::vector<float> decoded(const Network& model) {
  const PackedBatch source({{1, 2, 3, 4, 5, 6, 7}, {8, 9}}), target({{3, 1, 4, 1, 5}, {9, 2, 6}});
  const Batch source_batch = source.batch(), target_batch = target.batch();
  ThreadPool pool(1);
  Arena arena(size_t{8} << 20);
  Ctx ctx{pool, arena};
  const Transformer& t = model.transformer();
  const Var logits = t.logits(ctx, t.hidden(ctx, {.source = source_batch, .target = target_batch}));
  return {logits.value.data, logits.value.data + logits.value.size()};
}

// The paper's Transformer is a Marian model with its width in another order: what is written opens
// as one, and Heed has the original back to the bit.
TEST(HuggingFaceConfig, ThePapersTransformerIsAMarian) {
  ModelConfig c;
  EXPECT_EQ(c.sinusoid_layout, SinusoidLayout::interleaved);
  c.vocabulary = 20, c.width = 24, c.heads = 4, c.ffn = 36, c.max_positions = 16;
  c.encoder_layers = c.decoder_layers = 2;
  for (const Tying tying : {Tying::all, Tying::none}) {
    c.tying = tying;
    Network model(c, 3);
    EXPECT_EQ(model.hugging_face().model_type, "marian");
    Random random({.seed = 8});  // biases and norms too
    for (float& w : model.parameters().all_values()) w += 0.1f * random.normal();
    const TemporaryFolder folder;
    model.save(folder.path());
    const Network again = Network::load(folder.path());
    EXPECT_EQ(again.config().sinusoid_layout, SinusoidLayout::interleaved);
    for (const ParameterSpec& spec : model.parameters().specs()) {
      EXPECT_THAT(again.parameters().values(spec.name),
                  testing::ElementsAreArray(model.parameters().values(spec.name)))
          << spec.name;
    }
    EXPECT_EQ(decoded(again), decoded(model));

    // As others see it: a Marian, whose table of positions has all sines first.
    const std::string path = folder.path() + "/config.json";
    json config = json::parse(std::ifstream(path));
    EXPECT_EQ(config["model_type"], "marian");
    EXPECT_EQ(config.erase("heed_sinusoid_layout"), 1u);
    std::ofstream(path) << config;
    const Network marian = Network::load(folder.path());
    EXPECT_EQ(marian.config().sinusoid_layout, SinusoidLayout::half);
    EXPECT_THAT(decoded(marian), testing::Pointwise(testing::FloatNear(2e-5f), decoded(model)));
  }
}

TEST(HuggingFaceConfig, KeepsAllEndsOfText) {
  const HfConfig hf = hf_read_config(
      R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
          "eos_token_id": [7, 8]})",
      "config.json", file_of({}));
  EXPECT_EQ(hf.config.eos_id, 7);
  EXPECT_EQ(json::parse(hf_write_config(hf))["eos_token_id"], json({7, 8}));
}

// As training leaves it, for a model that is none of transformers'.
TEST(HuggingFaceConfig, KeepsTaskAndNamesOfLabelsAlsoOfItsOwnKind) {
  ModelConfig c;
  c.family = Family::encoder_only, c.head = Head::classifier, c.labels = 2;
  c.norm = NormKind::rms_norm;
  const HfConfig hf = hf_equivalent(c);
  ASSERT_EQ(hf.model_type, "heed");
  json written = json::parse(hf_write_config(hf));
  const json names{{"0", "bad"}, {"1", "good"}}, numbers{{"bad", 0}, {"good", 1}};
  written["id2label"] = names, written["label2id"] = numbers;
  written["finetuning_task"] = "classification", written["heed_text_pairs"] = true;
  const HfConfig again = hf_read_config(written.dump(), "config.json", file_of({}));
  EXPECT_EQ(again.config, c);
  EXPECT_EQ(json::parse(hf_write_config(again)), written);
}

// Models that only say how they differ from their class.
TEST(HuggingFaceConfig, KnowsWhatAClassHasWhenItsConfigIsSilent) {
  const auto read = [](const std::string& type) {
    return hf_read_config(R"({"model_type": ")" + type + "\"}", "config.json", file_of({})).config;
  };
  EXPECT_EQ(read("mt5").ffn_kind, FfnKind::gated);
  EXPECT_EQ(read("mt5").tying, Tying::source_target);
  EXPECT_EQ(read("t5").ffn_kind, FfnKind::plain);
  EXPECT_EQ(read("t5").tying, Tying::all);
  EXPECT_EQ(read("opt").max_positions, 2048);
  EXPECT_THAT(read("mistral").windows, testing::ElementsAre(4096));
}

// ---- what a file may not hold ------------------------------------------------------------------

constexpr const char* kTinyGpt2 = R"({"model_type": "gpt2", "architectures": ["GPT2Model"],
  "n_embd": 4, "vocab_size": 5, "n_layer": 1, "n_head": 1, "n_positions": 6})";

std::vector<Tensor> tiny_gpt2() {
  return {{"wte.weight", {5, 4}},
          {"wpe.weight", {6, 4}},
          {"h.0.ln_1.weight", {4}},
          {"h.0.ln_1.bias", {4}},
          {"h.0.attn.c_attn.weight", {4, 12}},
          {"h.0.attn.c_attn.bias", {12}},
          {"h.0.attn.c_proj.weight", {4, 4}},
          {"h.0.attn.c_proj.bias", {4}},
          {"h.0.attn.bias", {1, 1, 6, 6}},
          {"h.0.ln_2.weight", {4}},
          {"h.0.ln_2.bias", {4}},
          {"h.0.mlp.c_fc.weight", {4, 16}},
          {"h.0.mlp.c_fc.bias", {16}},
          {"h.0.mlp.c_proj.weight", {16, 4}},
          {"h.0.mlp.c_proj.bias", {4}},
          {"ln_f.weight", {4}},
          {"ln_f.bias", {4}}};
}

std::string load_error(const TensorFile& file) {
  const HfConfig hf = hf_read_config(kTinyGpt2, "config.json", file);
  return message_of([&] { hf_load(hf, file, "folder"); });
}

TEST(HuggingFaceTensors, LoadWithAndWithoutThePrefix) {
  EXPECT_EQ(load_error(file_of(tiny_gpt2())), "no error");
  std::vector<Tensor> tensors = tiny_gpt2();
  for (Tensor& t : tensors) t.name = "transformer." + t.name;
  tensors.push_back({"lm_head.weight", {5, 4}});
  EXPECT_EQ(load_error(file_of(tensors)), "no error");
}

TEST(HuggingFaceTensors, ReportEverythingAtOnce) {
  std::vector<Tensor> tensors = tiny_gpt2();
  tensors[1].shape = {7, 4};
  tensors[2].name = "h.0.ln_9.weight";
  EXPECT_THAT(load_error(file_of(tensors)),
              AllOf(HasSubstr("1 tensor missing: h.0.ln_1.weight"),
                    HasSubstr("wpe.weight is [7, 4], expected [6, 4]"),
                    HasSubstr("1 tensor unknown: 'h.0.ln_9.weight'")));
  EXPECT_THAT(load_error(file_of({})), HasSubstr("16 tensors missing: wte.weight, "));
  EXPECT_THAT(load_error(file_of(tiny_gpt2(), DType::i32)), HasSubstr("expected floats"));
}

TEST(HuggingFaceTensors, RefuseNaN) {
  const TemporaryFolder folder;
  const HfConfig hf = hf_read_config(kTinyGpt2, "config.json", file_of({}));
  Parameters parameters(hf.config);
  parameters.values("decoder.0.ffn.norm.beta")[2] = std::numeric_limits<float>::quiet_NaN();
  write_safetensors(folder.path() + "/model.safetensors", hf_tensors(hf, parameters).views);
  EXPECT_THAT(load_error(TensorFile::open(folder.path())), HasSubstr("h.0.ln_2.bias contains NaN"));
}

// The same model out of a pickle, with the buffers and tied copies that such files have.
TEST(HuggingFaceTensors, LoadFromPytorchFiles) {
  const std::string models = std::string(HEED_TEST_DATA) + "/golden/models/";
  const Network model = Network::load(models + "bert-mlm");
  const TensorFile file = TensorFile::open(models + "bert-mlm/pytorch_model.bin");
  const Parameters same = hf_load(model.hugging_face(), file, "pytorch_model.bin");
  EXPECT_TRUE(std::ranges::equal(same.all_values(), model.parameters().all_values()));
}

// f16 and bf16 come back rounded once.
TEST(HuggingFaceTensors, AreWrittenInHalfPrecision) {
  const HfConfig hf = hf_read_config(kTinyGpt2, "config.json", file_of({}));
  const Network model(hf.config, 5);
  for (const auto& [dtype, tolerance] : {std::pair{DType::f16, 1e-3}, {DType::bf16, 8e-3}}) {
    const TemporaryFolder folder;
    model.save(folder.path(), {.dtype = dtype});
    const Network again = Network::load(folder.path());
    const auto before = model.parameters().values("decoder.0.self.qkv.weight");
    const auto after = again.parameters().values("decoder.0.self.qkv.weight");
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(after[i], before[i], tolerance * std::abs(before[i]) + 1e-7);
    }
  }
}

}  // namespace
}  // namespace heed
