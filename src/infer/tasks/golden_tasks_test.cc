// The tasks give what transformers 4.47.1 gave for the golden models (which `heed forward` repeats
// too), with raw ids: these models have no tokenizers.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/tasks.h"
#include "model/files/tensor_file.h"

namespace heed {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

// A golden model, its inputs, and the logits of all their tokens (or of the texts), end to end.
struct Golden {
  explicit Golden(const std::string& name)
      : folder(std::string(HEED_TEST_DATA) + "/golden/models/" + name),
        model(Model::load(folder)),
        facts(json::parse(std::ifstream(folder + "/golden.json"))) {
    const TensorFile file = TensorFile::open(folder + "/golden.safetensors");
    if (const TensorView* tensor = file.find("logits")) {
      width = static_cast<size_t>(tensor->shape.back());
      logits.resize(static_cast<size_t>(tensor->element_count()));
      copy_as_f32(*tensor, logits.data());
    }
    for (const char* key : {"sequences", "sources"}) {
      if (facts.contains(key)) sequences = facts[key].get<std::vector<Ids>>();
    }
  }
  std::vector<TaskInput> inputs() const {
    std::vector<TaskInput> all;
    for (const Ids& ids : sequences) all.push_back({.ids = ids});
    return all;
  }

  std::string folder;
  Model model;
  json facts;
  std::vector<Ids> sequences;
  std::vector<float> logits;
  size_t width = 0;
};

constexpr float kTolerance = 2e-5f;

class MaskedModel : public testing::TestWithParam<const char*> {};

TEST_P(MaskedModel, FillsAsTheLogitsSay) {
  const Golden golden(GetParam());
  const Filler filler(golden.model, {.threads = 1});
  size_t row = 0, masks = 0;
  for (const Ids& ids : golden.sequences) {
    // Every id of the sequence in turn is taken for the mask's.
    for (size_t t = 0; t < ids.size(); ++t, ++row) {
      const Filled filled = filler.fill(
          {{.ids = ids}}, {.top = static_cast<int>(golden.width), .mask_id = ids[t]})[0];
      const auto mask =
          std::ranges::find(filled.masks, static_cast<int64_t>(t), &FilledMask::token);
      ASSERT_NE(mask, filled.masks.end());
      const float* logits = &golden.logits[row * golden.width];
      double sum = 0;
      for (size_t v = 0; v < golden.width; ++v) sum += std::exp(static_cast<double>(logits[v]));
      ASSERT_EQ(mask->candidates.size(), golden.width);
      for (const Candidate& candidate : mask->candidates) {
        EXPECT_NEAR(candidate.probability,
                    std::exp(static_cast<double>(logits[candidate.id])) / sum, kTolerance);
      }
      EXPECT_NEAR(logits[mask->candidates[0].id], *std::max_element(logits, logits + golden.width),
                  kTolerance);
      ++masks;
    }
  }
  EXPECT_EQ(row * golden.width, golden.logits.size());
  EXPECT_GT(masks, size_t{10});
}

INSTANTIATE_TEST_SUITE_P(Golden, MaskedModel,
                         testing::Values("bert-mlm", "roberta-mlm", "distilbert-mlm"));

TEST(GoldenTasks, ClassifiesAsTheLogitsSay) {
  const Golden golden("bert-classify");
  const auto results = Classifier(golden.model, {.threads = 1}).classify(golden.inputs());
  ASSERT_EQ(results.size() * golden.width, golden.logits.size());
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t l = 0; l < golden.width; ++l) {
      EXPECT_NEAR(results[i].logits[l], golden.logits[i * golden.width + l], kTolerance);
    }
  }
}

TEST(GoldenTasks, TagsAsTheLogitsSay) {
  const Golden golden("bert-tag");
  const auto results = Tagger(golden.model, {.threads = 1}).tag(golden.inputs(), {.logits = true});
  std::vector<float> all;
  for (const Tagged& tagged : results) {
    all.insert(all.end(), tagged.logits.begin(), tagged.logits.end());
  }
  ASSERT_EQ(all.size(), golden.logits.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], golden.logits[i], kTolerance);
}

// The golden loss is the mean of what score() gives.
class LanguageModel : public testing::TestWithParam<const char*> {};

TEST_P(LanguageModel, ScoresAsTheLossSays) {
  const Golden golden(GetParam());
  std::vector<TaskInput> inputs = golden.inputs();
  if (golden.model.has_source()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].second_ids = golden.facts["labels"][i].get<Ids>();
    }
  }
  double sum = 0;
  size_t count = 0;
  for (const Scored& scored : Scorer(golden.model, {.threads = 1}).score(inputs)) {
    sum -= scored.log_probability;
    count += scored.ids.size();
  }
  EXPECT_NEAR(sum / static_cast<double>(count), golden.facts["loss"].get<double>(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Golden, LanguageModel,
                         testing::Values("gpt2", "llama-gqa", "mistral-window", "bloom-alibi",
                                         "marian", "bart", "t5"));

}  // namespace
}  // namespace heed
