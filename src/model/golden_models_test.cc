// Tiny models of every family, run through transformers 4.47.1 (or, where golden.json says so, in
// double precision by tests/golden/reference.py): Heed reads the same folders and must give the
// same outputs, attention maps, losses and gradients, and write the folders back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

using nlohmann::json;
using Ids = std::vector<std::vector<int32_t>>;

constexpr double kOutputTolerance = 1e-4;  // of the largest value
constexpr double kMapTolerance = 1e-5;
// T5's scores have no scale and reach 67: the file's own maps, computed in f32, are up to 2.1e-5
// off those of double precision.
constexpr double kT5MapTolerance = 3e-5;
constexpr double kLossTolerance = 1e-5;  // of the loss
constexpr double kGradientTolerance = 1e-3;

std::string folder_of(const std::string& name) {
  return std::string(HEED_TEST_DATA) + "/golden/models/" + name;
}

// Outputs by the names of golden.safetensors.
using Outputs = std::map<std::string, std::vector<float>>;

std::vector<float> numbers(ConstMat m) {
  std::vector<float> all;
  for (int64_t r = 0; r < m.rows; ++r) all.insert(all.end(), m.row(r), m.row(r) + m.cols);
  return all;
}

// One model and its inputs; forward() and loss() run it.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : name_(name), model_(Network::load(folder_of(name), {.dropout = false})) {
    inputs_ = json::parse(std::ifstream(folder_of(name) + "/golden.json"));
    if (inputs_.contains("sources")) {
      source_ = PackedBatch(inputs_["sources"].get<Ids>());
      target_ = PackedBatch(inputs_["decoder_inputs"].get<Ids>());
    } else {
      Ids types;
      if (inputs_.contains("token_type_ids")) types = inputs_["token_type_ids"].get<Ids>();
      source_ = PackedBatch(inputs_["sequences"].get<Ids>(), types);
    }
    if (inputs_.contains("global_tokens")) {
      std::vector<int32_t> rows;
      const Ids tokens = inputs_["global_tokens"].get<Ids>();
      for (size_t s = 0; s < tokens.size(); ++s) {
        for (const int32_t t : tokens[s]) rows.push_back(source_.offsets[s] + t);
      }
      global_.emplace(source_.batch(), rows);
    }
  }

  Network& model() { return model_; }
  bool has_loss() const { return inputs_.contains("loss"); }
  double expected_loss() const { return inputs_["loss"].get<double>(); }

  Outputs forward() {
    Ctx ctx{pool_, arena_};
    Outputs outputs;
    AttentionMaps encoder_maps, decoder_maps;
    const Var hidden = run(ctx, &encoder_maps, &decoder_maps, &outputs);
    const Transformer& t = model_.transformer();
    const ModelConfig& c = model_.config();
    const bool is_seq2seq = c.family == Family::encoder_decoder;
    // Seen before the head, which may work in its memory.
    outputs["last_hidden_state"] = numbers(hidden.value);
    if (c.head == Head::language_model || c.head == Head::masked_lm) {
      outputs["logits"] = numbers(t.logits(ctx, hidden).value);
    } else if (c.head != Head::none) {
      outputs["logits"] = numbers(t.classify(ctx, hidden, source_.batch()).value);
    } else if (c.pooler) {
      outputs["pooler_output"] = numbers(t.pooled(ctx, hidden, source_.batch()).value);
    }
    const std::string self = is_seq2seq ? "encoder_attention" : "attention";
    for (const AttentionMap& map : encoder_maps) add_map(map, self, source_, source_, outputs);
    for (const AttentionMap& map : decoder_maps) {
      if (!is_seq2seq)
        add_map(map, "attention", source_, source_, outputs);
      else if (map.name.ends_with(".cross"))
        add_map(map, "cross_attention", target_, source_, outputs);
      else
        add_map(map, "decoder_attention", target_, target_, outputs);
    }
    return outputs;
  }

  // The loss; with a tape, its gradients are in the parameters afterwards.
  double loss(Tape* tape) {
    Ctx ctx{pool_, arena_, tape};
    model_.parameters().begin_step();
    const Var hidden = run(ctx, nullptr, nullptr, nullptr);
    const Transformer& t = model_.transformer();
    const std::vector<int32_t> labels = all_labels();
    const auto counted = std::count_if(labels.begin(), labels.end(),
                                       [](int32_t label) { return label != kIgnoreLabel; });
    const CrossEntropyOptions options{.gradient_scale = 1 / static_cast<float>(counted)};
    const Head head = model_.config().head;
    const bool by_token = head == Head::language_model || head == Head::masked_lm;
    const LossSum sum =
        by_token ? t.token_loss(ctx, hidden, labels, options)
                 : cross_entropy(ctx, t.classify(ctx, hidden, source_.batch()), labels, options);
    if (tape) {
      tape->backward(ctx);
      model_.parameters().finish_gradients();
    }
    return sum.sum / static_cast<double>(sum.count);
  }

 private:
  Var run(Ctx& ctx, AttentionMaps* encoder_maps, AttentionMaps* decoder_maps, Outputs* outputs) {
    const Transformer& t = model_.transformer();
    source_batch_ = source_.batch(), target_batch_ = target_.batch();
    switch (model_.config().family) {
      case Family::encoder_only:
        return t.encode(ctx, {source_batch_, global_ ? &*global_ : nullptr}, encoder_maps);
      case Family::decoder_only:
        return t.decode(ctx, source_batch_, decoder_maps);
      case Family::encoder_decoder:
        break;
    }
    const Var memory = t.encode(ctx, {source_batch_}, encoder_maps);
    if (outputs) (*outputs)["encoder_last_hidden_state"] = numbers(memory.value);
    return t.decode(ctx, target_batch_, memory, source_batch_, decoder_maps);
  }

  // As given; for decoder-only models the next token, and nothing after the last.
  std::vector<int32_t> all_labels() const {
    std::vector<int32_t> labels;
    if (!inputs_.contains("labels")) {
      for (const auto& sequence : inputs_["sequences"].get<Ids>()) {
        labels.insert(labels.end(), sequence.begin() + 1, sequence.end());
        labels.push_back(kIgnoreLabel);
      }
    } else if (inputs_["labels"][0].is_array()) {
      for (const auto& sequence : inputs_["labels"].get<Ids>()) {
        labels.insert(labels.end(), sequence.begin(), sequence.end());
      }
    } else {
      labels = inputs_["labels"].get<std::vector<int32_t>>();
    }
    return labels;
  }

  // A layer's map holds all sequences, one after the other: "encoder.0.self" → "….layer0.seq2".
  void add_map(const AttentionMap& map, const std::string& kind, const PackedBatch& queries,
               const PackedBatch& keys, Outputs& outputs) const {
    const std::string layer = map.name.substr(map.name.find('.') + 1);
    const float* at = map.probabilities.data;
    for (size_t s = 0; s + 1 < queries.offsets.size(); ++s) {
      const int heads = model_.config().heads;
      const int64_t size = int64_t{heads} * (queries.offsets[s + 1] - queries.offsets[s]) *
                           (keys.offsets[s + 1] - keys.offsets[s]);
      outputs[kind + ".layer" + layer.substr(0, layer.find('.')) + ".seq" + std::to_string(s)] = {
          at, at + size};
      at += size;
    }
  }

  std::string name_;
  json inputs_;
  Network model_;
  PackedBatch source_, target_;
  Batch source_batch_, target_batch_;
  std::optional<GlobalTokens> global_;
  ThreadPool pool_{2};
  Arena arena_{size_t{64} << 20};
};

std::vector<float> numbers(const TensorView& tensor) {
  std::vector<float> all(static_cast<size_t>(tensor.element_count()));
  copy_as_f32(tensor, all.data());
  return all;
}

// The largest difference, and the largest value that was expected.
struct Difference {
  double largest = 0, scale = 0;
  double relative() const { return scale > 0 ? largest / scale : largest; }
};
Difference difference(const std::vector<float>& found, const std::vector<float>& expected) {
  Difference d;
  EXPECT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double gap = std::abs(double{found[i]} - expected[i]);
    d.largest = std::isnan(gap) ? INFINITY : std::max(d.largest, gap);
    d.scale = std::max(d.scale, std::abs(double{expected[i]}));
  }
  return d;
}

class GoldenModels : public testing::TestWithParam<const char*> {};

TEST_P(GoldenModels, GiveTheSameOutputsAndAttentionMaps) {
  Golden golden(GetParam());
  const Outputs outputs = golden.forward();
  const TensorFile expected = TensorFile::open(folder_of(GetParam()) + "/golden.safetensors");
  for (const TensorView& tensor : expected.tensors()) {
    ASSERT_TRUE(outputs.contains(tensor.name)) << tensor.name;
    const Difference d = difference(outputs.at(tensor.name), numbers(tensor));
    if (tensor.name.find("attention") != std::string::npos) {
      const bool is_t5 = golden.model().config().position == Position::t5_bias;
      EXPECT_LE(d.largest, is_t5 ? kT5MapTolerance : kMapTolerance) << tensor.name;
    } else {
      EXPECT_LE(d.relative(), kOutputTolerance) << tensor.name;
    }
  }
}

TEST_P(GoldenModels, GiveTheSameLossAndGradients) {
  Golden golden(GetParam());
  if (!golden.has_loss()) GTEST_SKIP() << "no loss in golden.json";
  EXPECT_NEAR(golden.loss(nullptr), golden.expected_loss(),
              kLossTolerance * golden.expected_loss());
  golden.model().add_gradients();
  Tape tape;
  EXPECT_NEAR(golden.loss(&tape), golden.expected_loss(), kLossTolerance * golden.expected_loss());

  const HfTensors found = hf_gradients(golden.model().hugging_face(), golden.model().parameters());
  std::map<std::string, std::vector<float>> by_name;
  for (const TensorView& tensor : found.views) by_name[tensor.name] = numbers(tensor);
  const TensorFile expected = TensorFile::open(folder_of(GetParam()) + "/grads.safetensors");
  // Some gradients are zero by the mathematics (of a key's bias: it shifts all scores of a query
  // alike), and rounding in files; they are compared on the scale of the largest of all.
  double largest = 0;
  for (const TensorView& tensor : expected.tensors()) {
    for (const float x : numbers(tensor)) largest = std::max(largest, std::abs(double{x}));
  }
  for (const TensorView& tensor : expected.tensors()) {
    ASSERT_TRUE(by_name.contains(tensor.name)) << tensor.name;
    const Difference d = difference(by_name[tensor.name], numbers(tensor));
    EXPECT_LE(d.largest, kGradientTolerance * std::max(d.scale, 1e-3 * largest)) << tensor.name;
    by_name.erase(tensor.name);
  }
  for (const auto& [name, values] : by_name) ADD_FAILURE() << "no such gradient: " << name;
}

// Import and export give the same bytes under the same names, and the same config.
TEST_P(GoldenModels, ComeBackByteForByte) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("heed_golden_" + std::string(GetParam()));
  const Network model = Network::load(folder_of(GetParam()));
  model.save(folder.string());
  const Network again = Network::load(folder.string());
  EXPECT_EQ(again.config(), model.config());
  EXPECT_EQ(again.hugging_face().model_type, model.hugging_face().model_type);
  EXPECT_EQ(again.hugging_face().architecture, model.hugging_face().architecture);
  EXPECT_EQ(json::parse(again.hugging_face().other_fields),
            json::parse(model.hugging_face().other_fields));

  const TensorFile before = TensorFile::open(folder_of(GetParam()) + "/model.safetensors");
  const TensorFile after = TensorFile::open(folder.string());
  EXPECT_EQ(before.tensors().size(), after.tensors().size());
  for (const TensorView& tensor : before.tensors()) {
    const TensorView* same = after.find(tensor.name);
    ASSERT_TRUE(same) << tensor.name;
    EXPECT_EQ(same->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << tensor.name;
  }
  std::filesystem::remove_all(folder);
}

// A config alone, without where it came from, finds the way back to its architecture.
TEST_P(GoldenModels, AreRecognisedByTheirConfig) {
  const Network model = Network::load(folder_of(GetParam()));
  const HfConfig found = hf_equivalent(model.config());
  const std::string type = model.hugging_face().model_type;
  // Some architectures are others by another name.
  if (type != "mt5") {
    EXPECT_EQ(found.model_type, type);
  }
  EXPECT_NE(found.model_type, "heed");
  EXPECT_EQ(found.config, model.config());
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModels,
                         testing::Values("bart", "bert", "bert-classify", "bert-mlm", "bert-tag",
                                         "bloom-alibi", "byt5", "distilbert-mlm", "gemma2", "gpt2",
                                         "gpt-neox", "gpt-neox-sequential", "gptneo-localglobal",
                                         "llama-gqa", "llama3-bias", "m2m-100", "pegasus",
                                         "qwen2-window", "longformer", "marian", "mistral-window",
                                         "mt5", "roberta-mlm", "t5", "t5-v1.1-gated"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace heed
