// Adam and AdamW against the published formulas in double precision, clipping against PyTorch's.
#include "train/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "heed/error.h"
#include "model/gradient_step.h"
#include "model/presets.h"

namespace heed {
namespace {

ModelConfig small_config() {
  ModelConfig c = preset("transformer-tiny");
  c.vocabulary = 37, c.width = 8, c.heads = 2, c.ffn = 12;
  c.encoder_layers = c.decoder_layers = 1;
  return c;
}

Parameters small_parameters() {
  Parameters p(small_config());
  p.initialise(3);
  p.add_gradients();
  return p;
}

void fill_gradients(Parameters& p, uint32_t step) {
  Random random({.seed = 5, .step = step});
  GradientStep gradients(p);
  gradients.finish();
  // Through the weights and not the whole buffer: the floats between them stay zero.
  for (const ParameterSpec& spec : p.specs()) {
    Mat& g = p.weight(spec.name).gradient->value;
    for (int64_t i = 0; i < g.size(); ++i) g.data[i] = random.normal();
  }
}

// torch.optim.Adam and AdamW, as their documentation writes them.
struct Reference {
  std::vector<double> w, m, v;
  void step(const OptimizerOptions& o, const std::vector<double>& g, bool decay, double lr, int t) {
    for (size_t i = 0; i < w.size(); ++i) {
      double gradient = g[i];
      const double lambda = decay ? o.weight_decay : 0;
      if (o.kind == OptimizerKind::adamw) w[i] -= lr * lambda * w[i];
      if (o.kind == OptimizerKind::adam) gradient += lambda * w[i];
      m[i] = o.beta1 * m[i] + (1 - double{o.beta1}) * gradient;
      v[i] = o.beta2 * v[i] + (1 - double{o.beta2}) * gradient * gradient;
      const double m_hat = m[i] / (1 - std::pow(double{o.beta1}, t));
      const double v_hat = v[i] / (1 - std::pow(double{o.beta2}, t));
      w[i] -= lr * m_hat / (std::sqrt(v_hat) + o.eps);
    }
  }
};

TEST(Optimizer, FollowsTheFormulas) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    const OptimizerOptions options{.kind = kind, .eps = 1e-8f, .weight_decay = 0.1f};
    Parameters p = small_parameters();
    std::map<std::string, Reference> references;
    for (const ParameterSpec& spec : p.specs()) {
      const auto values = p.values(spec.name);
      Reference& r = references[spec.name];
      r.w.assign(values.begin(), values.end());
      r.m.resize(values.size()), r.v.resize(values.size());
    }
    Optimizer optimizer(p, options);
    ThreadPool pool(2);
    for (int t = 1; t <= 5; ++t) {
      fill_gradients(p, static_cast<uint32_t>(t));
      optimizer.update(pool, 0.01 * t, 0.5);
      for (const ParameterSpec& spec : p.specs()) {
        std::vector<double> g;
        for (const float x : p.gradient(spec.name)) g.push_back(0.5 * x);
        const bool decay = spec.name.ends_with(".weight") || spec.name.ends_with(".tokens");
        references[spec.name].step(options, g, decay, 0.01 * t, t);
      }
    }
    EXPECT_EQ(optimizer.steps(), 5);
    for (const ParameterSpec& spec : p.specs()) {
      const auto values = p.values(spec.name);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], references[spec.name].w[i], 2e-6) << spec.name << " " << i;
      }
    }
  }
}

// Adafactor's steps (Shazeer & Stern 2018, §8): α max(ε₂, RMS of the matrix), for q, k and v each.
TEST(Optimizer, RelativeStepsAreAsLargeAsTheWeights) {
  const OptimizerOptions options{
      .kind = OptimizerKind::adamw, .eps = 1e-8f, .weight_decay = 0.1f, .relative = true};
  ModelConfig c = small_config();
  c.initialisation = Initialisation::t5;
  Parameters p(c);
  p.initialise(3);
  p.add_gradients();
  struct Part {
    std::string name;
    size_t begin, size;
    Reference reference;
  };
  std::vector<Part> parts;
  for (const ParameterSpec& spec : p.specs()) {
    size_t begin = 0;
    for (const int64_t rows : spec.parts.empty() ? std::vector{spec.rows} : spec.parts) {
      const auto size = static_cast<size_t>(rows * spec.cols);
      const auto values = p.values(spec.name).subspan(begin, size);
      parts.push_back({spec.name, begin, size, {{values.begin(), values.end()}, {}, {}}});
      parts.back().reference.m.resize(size), parts.back().reference.v.resize(size);
      begin += size;
    }
  }
  Optimizer optimizer(p, options);
  ThreadPool pool(2);
  for (int t = 1; t <= 5; ++t) {
    fill_gradients(p, static_cast<uint32_t>(t));
    optimizer.update(pool, 0.01, 1);
    for (Part& part : parts) {
      Reference& r = part.reference;
      double squares = 0;
      for (const double w : r.w) squares += w * w;
      const double size = std::max(1e-3, std::sqrt(squares / static_cast<double>(r.w.size())));
      const auto gradient = p.gradient(part.name).subspan(part.begin, part.size);
      if (decays(part.name)) {
        for (double& w : r.w) w -= 0.01 * 0.1 * w;
      }
      r.step(options, {gradient.begin(), gradient.end()}, false, 0.01 * size, t);
    }
  }
  for (const Part& part : parts) {
    const auto values = p.values(part.name).subspan(part.begin, part.size);
    for (size_t i = 0; i < part.size; ++i) {
      ASSERT_NEAR(values[i], part.reference.w[i], 2e-6) << part.name << " " << part.begin + i;
    }
  }
}

TEST(Optimizer, KnowsWhatDecays) {
  EXPECT_TRUE(decays("encoder.0.self.qkv.weight"));
  EXPECT_TRUE(decays("embedding.tokens"));
  EXPECT_TRUE(decays("head.output.weight"));
  EXPECT_FALSE(decays("encoder.0.self.qkv.bias"));
  EXPECT_FALSE(decays("encoder.0.ffn.norm.gamma"));
  EXPECT_FALSE(decays("decoder.norm.beta"));
  EXPECT_FALSE(decays("encoder.t5_bias"));
}

TEST(Optimizer, ClipsAsPyTorchDoes) {
  Parameters p = small_parameters();
  fill_gradients(p, 1);
  double sum = 0;
  for (const float g : p.all_gradients()) sum += double{g} * g;
  Optimizer optimizer(p, {.clip_norm = 1});
  ThreadPool one(1), two(2);
  const double norm = optimizer.gradient_norm(one);
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-9 * norm);
  EXPECT_EQ(norm, optimizer.gradient_norm(two));
  EXPECT_DOUBLE_EQ(optimizer.clip_factor(4), 1 / (4 + 1e-6));
  EXPECT_EQ(optimizer.clip_factor(0.5), 1);
  EXPECT_EQ(Optimizer(p, {}).clip_factor(1e9), 1);
}

TEST(Optimizer, WeightByWeightGivesTheSameBits) {
  ModelConfig config = small_config();
  config.vocabulary = 5003;  // a weight of several parts, the last one short
  for (const MomentType moments : {MomentType::f32, MomentType::bf16}) {
    const bool relative = moments == MomentType::bf16;
    Parameters whole(config), single(config);
    const OptimizerOptions options{
        .weight_decay = 0.1f, .relative = relative, .ema_decay = 0.9, .moments = moments};
    for (Parameters* p : {&whole, &single}) {
      p->initialise(3);
      p->add_gradients();
    }
    Optimizer one(whole, options), other(single, options);
    ThreadPool pool(2);
    constexpr size_t kWithout = 2;  // a weight that no gradient comes for
    for (uint32_t t = 1; t <= 3; ++t) {
      fill_gradients(whole, t);
      fill_gradients(single, t);
      Mat& none = whole.gradients()[kWithout].value;
      std::fill_n(none.data, none.size(), 0.0f);
      const double norm = one.gradient_norm(pool);
      one.update(pool, 0.01, 1);
      other.begin_update(pool, 0.01);
      for (size_t w = single.specs().size(); w-- > 0;) {
        if (w != kWithout) other.update_weight(pool, w);
      }
      EXPECT_EQ(other.finish_update(pool), norm);
      EXPECT_TRUE(std::ranges::equal(single.all_values(), whole.all_values()));
      EXPECT_TRUE(std::ranges::equal(other.average(), one.average()));
    }
    other.begin_update(pool, 0.01);
    other.update_weight(pool, 0);
    EXPECT_THROW(other.update_weight(pool, 0), Error);
  }
}

TEST(Optimizer, LendsGradientsWhereNothingNeedsThemWhole) {
  EXPECT_EQ(gradient_memory({}, 1), GradientMemory::pooled);
  EXPECT_EQ(gradient_memory({}, 2), GradientMemory::full);
  EXPECT_EQ(gradient_memory({.clip_norm = 1}, 1), GradientMemory::full);
  EXPECT_EQ(bytes_per_weight({}, GradientMemory::full), 16);
  EXPECT_EQ(bytes_per_weight({}, GradientMemory::pooled), 12);
  EXPECT_EQ(bytes_per_weight({.ema_decay = 0.9}, GradientMemory::pooled), 16);
  EXPECT_EQ(bytes_per_weight({.moments = MomentType::bf16}, GradientMemory::pooled), 8);
}

TEST(Optimizer, AveragesTheWeights) {
  Parameters p = small_parameters();
  Optimizer optimizer(p, {.ema_decay = 0.15});
  ThreadPool pool(2);
  std::vector<double> expected(p.all_values().begin(), p.all_values().end());
  for (int t = 1; t <= 3; ++t) {
    fill_gradients(p, static_cast<uint32_t>(t));
    optimizer.update(pool, 0.1, 1);
    const double decay = std::min(0.15, (1.0 + t) / (10 + t));  // 2/11 at first: 0.15 always
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = decay * expected[i] + (1 - decay) * p.all_values()[i];
    }
  }
  const std::vector<float> last(p.all_values().begin(), p.all_values().end());
  optimizer.swap_average();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(p.all_values()[i], expected[i], 1e-6) << i;
  }
  optimizer.swap_average();
  EXPECT_TRUE(std::equal(last.begin(), last.end(), p.all_values().begin()));
}

TEST(Optimizer, GivesTheSameBitsForAnyThreads) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    Parameters p = small_parameters();
    Optimizer optimizer(p, {.weight_decay = 0.01f, .clip_norm = 1, .ema_decay = 0.9});
    ThreadPool pool(threads);
    for (uint32_t t = 1; t <= 3; ++t) {
      fill_gradients(p, t);
      optimizer.update(pool, 0.01, optimizer.clip_factor(optimizer.gradient_norm(pool)));
    }
    results.emplace_back(p.all_values().begin(), p.all_values().end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace heed
