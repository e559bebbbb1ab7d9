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
#include <map>
#include <nlohmann/json.hpp>

#include "heed/model_files.h"
#include "model/golden_models_testing.h"
#include "model/network.h"

namespace heed {
namespace {

using nlohmann::json;

constexpr double kOutputTolerance = 1e-4;  // of the largest value
constexpr double kMapTolerance = 1e-5;
// T5's scores have no scale and reach 67: the file's own maps, computed in f32, are up to 2.1e-5
// off those of double precision.
constexpr double kT5MapTolerance = 3e-5;
constexpr double kLossTolerance = 1e-5;  // of the loss
constexpr double kGradientTolerance = 1e-3;

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

class GoldenModels : public testing::TestWithParam<std::string> {
 protected:
  GoldenModels()
      : out_(testing::TempDir() + "heed_golden_"), folder_(golden_model_folder(GetParam())) {
    // Two tests of one model may run at the same time.
    std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(test.begin(), test.end(), '/', '_');
    out_ += test;
  }
  ~GoldenModels() override {
    for (const std::string& file : {outputs_file(), gradients_file()}) {
      std::filesystem::remove(file);
    }
  }

  // As `heed forward` runs it.
  ForwardResult run(bool gradients) {
    return run_forward(folder_, {.inputs = folder_ + "/golden.json",
                                 .out = outputs_file(),
                                 .gradients = gradients ? gradients_file() : "",
                                 .attention = true,
                                 .threads = 2});
  }
  std::string outputs_file() const { return out_ + "_outputs.safetensors"; }
  std::string gradients_file() const { return out_ + "_gradients.safetensors"; }
  const std::string& folder() const { return folder_; }

 private:
  std::string out_, folder_;
};

TEST_P(GoldenModels, GiveTheSameOutputsAndAttentionMaps) {
  run(/*gradients=*/false);
  const TensorFile found = TensorFile::open(outputs_file());
  const TensorFile expected = TensorFile::open(folder() + "/golden.safetensors");
  const bool is_t5 = Network::load(folder()).config().position == Position::t5_bias;
  for (const TensorView& tensor : expected.tensors()) {
    if (tensor.name.starts_with("hidden_states.")) continue;  // not written by `heed forward`
    const TensorView* same = found.find(tensor.name);
    ASSERT_TRUE(same) << tensor.name;
    const Difference d = difference(numbers(*same), numbers(tensor));
    if (tensor.name.find("attention") != std::string::npos) {
      EXPECT_LE(d.largest, is_t5 ? kT5MapTolerance : kMapTolerance) << tensor.name;
    } else {
      EXPECT_LE(d.relative(), kOutputTolerance) << tensor.name;
    }
  }
}

TEST_P(GoldenModels, GiveTheSameLossAndGradients) {
  const json golden = json::parse(std::ifstream(folder() + "/golden.json"));
  if (!golden.contains("loss")) GTEST_SKIP() << "no loss in golden.json";
  const double loss = golden["loss"].get<double>();
  for (const bool gradients : {false, true}) {
    const ForwardResult result = run(gradients);
    ASSERT_TRUE(result.loss.has_value());
    EXPECT_NEAR(*result.loss, loss, kLossTolerance * loss);
  }

  const TensorFile found = TensorFile::open(gradients_file());
  std::map<std::string, std::vector<float>> by_name;
  for (const TensorView& tensor : found.tensors()) by_name[tensor.name] = numbers(tensor);
  const TensorFile expected = TensorFile::open(folder() + "/grads.safetensors");
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
      std::filesystem::temp_directory_path() / ("heed_golden_" + GetParam());
  const Network model = Network::load(golden_model_folder(GetParam()));
  model.save(folder.string());
  const Network again = Network::load(folder.string());
  EXPECT_EQ(again.config(), model.config());
  EXPECT_EQ(again.hugging_face().model_type, model.hugging_face().model_type);
  EXPECT_EQ(again.hugging_face().architecture, model.hugging_face().architecture);
  EXPECT_EQ(json::parse(again.hugging_face().other_fields),
            json::parse(model.hugging_face().other_fields));

  const TensorFile before =
      TensorFile::open(golden_model_folder(GetParam()) + "/model.safetensors");
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
  const Network model = Network::load(golden_model_folder(GetParam()));
  const HfConfig found = hf_equivalent(model.config());
  const std::string type = model.hugging_face().model_type;
  // Some architectures are others by another name.
  if (type != "mt5") {
    EXPECT_EQ(found.model_type, type);
  }
  EXPECT_NE(found.model_type, "heed");
  EXPECT_EQ(found.config, model.config());
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModels, testing::ValuesIn(golden_models()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace heed
