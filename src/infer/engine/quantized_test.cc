// Engines over models of fewer bits: whatever the batch and the threads, the same answers.
#include <gtest/gtest.h>

#include "base/files/file_testing.h"
#include "heed/model_files.h"
#include "infer/engine/engine_testing.h"
#include "model/quantize.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

class QuantizedEngineTest : public FolderTest, public testing::WithParamInterface<const char*> {
 protected:
  // As a user gets one: by a folder.
  Model make(Family family) {
    Network(tiny_config(family), 1).save(path("wide"));
    quantize_model(path("wide"), path("narrow"), {.type = GetParam(), .threads = 1});
    return Model::load(path("narrow"), {.tokenizer = false});
  }
};

TEST_P(QuantizedEngineTest, ManyAreAsOne) {
  for (const Family family : {Family::encoder_decoder, Family::decoder_only}) {
    const Model model = make(family);
    EXPECT_STREQ(weight_type_name(main_type(model.network().parameters())), GetParam());
    const std::vector<Ids> inputs = random_inputs(24, 3);
    for (const int beam : {1, 4}) {
      SearchOptions search;
      search.beam = beam, search.max_new_tokens = 8;
      Engine one(model, {.threads = 1}), two(model, {.threads = 2});
      const std::vector<Ids> together = two.run_ids(inputs, search);
      EXPECT_EQ(one.run_ids(inputs, search), together);
      Engine workers(model, {.threads = 1, .workers = 2});
      EXPECT_EQ(workers.run_ids(inputs, search), together);
      for (size_t i = 0; i < inputs.size(); i += 5) {
        EXPECT_EQ(two.run_ids({inputs[i]}, search), std::vector<Ids>{together[i]});
      }
    }
  }
}

TEST_P(QuantizedEngineTest, InfoTellsTheType) {
  make(Family::decoder_only);
  const ModelInfo wide = model_info(path("wide")), narrow = model_info(path("narrow"));
  EXPECT_EQ(wide.weight_type, "f32");
  EXPECT_EQ(narrow.weight_type, GetParam());
  EXPECT_EQ(wide.parameters, narrow.parameters);
  EXPECT_LT(narrow.weight_bytes, wide.weight_bytes * 7 / 10);
}

std::vector<const char*> quantized_type_names() {
  std::vector<const char*> names;
  for (const kernels::WeightTypeInfo& type : kernels::weight_types()) {
    if (type.type != WeightType::f32) names.push_back(type.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizedEngineTest, testing::ValuesIn(quantized_type_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace heed
