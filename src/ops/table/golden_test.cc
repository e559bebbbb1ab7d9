// Against PyTorch: forward, loss, every gradient, and ten steps of Adam.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "ops/table/torch_transformer_testing.h"

namespace heed {
namespace {

// max |a - b| / max |b|
double relative_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double here = std::abs(double{a[i]} - b[i]);
    if (std::isnan(here)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, here);
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return difference / largest;
}

std::span<const float> elements(const Mat& m) { return {m.data, static_cast<size_t>(m.size())}; }

class GoldenTransformer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::string(HEED_TEST_DATA) + "/golden/" + GetParam() + "/";
    golden_ = nlohmann::json::parse(std::ifstream(folder_ + "golden.json"));
    TorchTransformer::Config config;
    config.width = golden_["d_model"], config.ffn = golden_["ffn"];
    config.vocabulary = golden_["vocab"], config.heads = golden_["heads"];
    config.layers = golden_["layers"], config.pre_norm = golden_["norm_place"] == "pre";
    model_ =
        std::make_unique<TorchTransformer>(config, read_tensors(folder_ + "model.safetensors"));
    const auto ids = [&](const char* key) {
      return PackedIds(golden_[key].get<std::vector<std::vector<int32_t>>>());
    };
    source_ = std::make_unique<PackedIds>(ids("sources"));
    target_ = std::make_unique<PackedIds>(ids("decoder_inputs"));
    labels_ = std::make_unique<PackedIds>(ids("labels"));
  }

  double train_loss(Ctx& ctx) {
    model_->begin_step();
    const LossSum loss = model_->loss(ctx, source_->batch(), target_->batch(), labels_->tokens(),
                                      golden_["label_smoothing"]);
    ctx.tape->backward(ctx);
    return loss.sum / static_cast<double>(loss.count);
  }

  std::string folder_;
  nlohmann::json golden_;
  std::unique_ptr<TorchTransformer> model_;
  std::unique_ptr<PackedIds> source_, target_, labels_;
  ThreadPool pool_{2};
  Arena arena_{64 << 20};
};

TEST_P(GoldenTransformer, ForwardMatchesPyTorch) {
  Ctx ctx{pool_, arena_};
  const auto golden = read_tensors(folder_ + "golden.safetensors");
  const Var memory = model_->encode(ctx, source_->batch());
  EXPECT_LT(relative_difference(elements(memory.value), golden.at("memory").data), 1e-5);
  const Var logits =
      model_->logits(ctx, model_->decode(ctx, target_->batch(), memory, source_->batch()));
  EXPECT_LT(relative_difference(elements(logits.value), golden.at("logits").data), 1e-5);
}

TEST_P(GoldenTransformer, LossAndEveryGradientMatchPyTorch) {
  Tape tape;
  Ctx ctx{pool_, arena_, &tape};
  EXPECT_NEAR(train_loss(ctx), golden_["loss"].get<double>(), 1e-5);
  const auto gradients = read_tensors(folder_ + "grads.safetensors");
  EXPECT_EQ(gradients.size(), model_->names().size());
  for (const auto& [name, tensor] : gradients) {
    EXPECT_LT(relative_difference(model_->gradient(name), tensor.data), 1e-4) << name;
  }
}

TEST_P(GoldenTransformer, TenAdamStepsFollowPyTorch) {
  const auto& adam = golden_["adam"];
  const auto losses = adam["losses_before_each_of_10_steps"].get<std::vector<double>>();
  const double width = golden_["d_model"], warmup = 10;
  const double beta1 = adam["betas"][0], beta2 = adam["betas"][1];
  Tape tape;
  for (size_t i = 0; i < losses.size(); ++i) {
    const Arena::Mark mark = arena_.mark();
    Ctx ctx{pool_, arena_, &tape};
    EXPECT_NEAR(train_loss(ctx), losses[i], 2e-4 * losses[i]) << "before step " << i + 1;
    const double step = static_cast<double>(i) + 1;
    const double rate =
        std::pow(width, -0.5) * std::min(std::pow(step, -0.5), step * std::pow(warmup, -1.5));
    model_->adam(pool_, {.learning_rate = static_cast<float>(rate),
                         .beta1 = static_cast<float>(beta1),
                         .beta2 = static_cast<float>(beta2),
                         .eps = adam["eps"].get<float>(),
                         .weight_decay = 0,
                         .l2 = 0,
                         .bias_correction1 = static_cast<float>(1 - std::pow(beta1, step)),
                         .bias_correction2 = static_cast<float>(1 - std::pow(beta2, step)),
                         .gradient_scale = 1});
    arena_.rewind(mark);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenTransformer,
                         testing::Values("transformer-post", "transformer-pre"),
                         [](const auto& suite) {
                           const std::string name = suite.param;
                           return name.substr(name.find('-') + 1);
                         });

}  // namespace
}  // namespace heed
