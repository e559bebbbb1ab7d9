#include "model/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files/file_testing.h"
#include "model/files/safetensors.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

using Json = nlohmann::json;

// All but f32.
std::span<const kernels::WeightTypeInfo> quantized_types() {
  return kernels::weight_types().subspan(1);
}

// Logits (or, of a model without them, hidden states) of a few tokens, by one thread.
std::vector<float> output_of(const Network& network) {
  ThreadPool pool(1);
  Arena arena(size_t{64} << 20);
  Ctx ctx{pool, arena};
  const PackedBatch source({{5, 9, 3, 14, 7}, {8, 2}}), target({{4, 6, 11}, {13}});
  const Transformer& t = network.transformer();
  const Var hidden = t.hidden(ctx, {.source = source.batch(), .target = target.batch()});
  const Head head = network.config().head;
  const Var y =
      head == Head::language_model || head == Head::masked_lm ? t.logits(ctx, hidden) : hidden;
  return {y.value.data, y.value.data + y.value.size()};
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0, whole = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - b[i], 2), whole += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(error / whole);
}

class QuantizeTest : public FolderTest, public testing::WithParamInterface<const char*> {
 protected:
  static std::string golden(const std::string& name) { return kGoldenFolder + "models/" + name; }

  Quantized quantized(const std::string& name, WeightType type, const std::string& keep = "") {
    const NameFilter keep_wide(keep);
    return quantize(Network::load(golden(name), {.dropout = false}), {type, keep_wide, pool_});
  }

  // The tensors of a saved folder, changed, in a folder of their own.
  template <class Change>
  std::string changed(const std::string& folder, const Change& change) {
    const TensorFile file = TensorFile::open(folder);
    std::vector<TensorView> views(file.tensors().begin(), file.tensors().end());
    std::vector<std::byte> zeros(1 << 16);
    change(views, std::span<std::byte>(zeros));
    const std::string to = path("changed");
    std::filesystem::create_directories(to);
    write_safetensors_folder(to, views, uint64_t{1} << 40);
    std::filesystem::copy_file(folder + "/config.json", to + "/config.json",
                               std::filesystem::copy_options::overwrite_existing);
    return to;
  }

  ThreadPool pool_{2};
};

// Every way in which tensors lie in files: plain, transposed, by heads, joined, reordered, tied.
class QuantizedModels : public QuantizeTest {};

TEST_P(QuantizedModels, AreTheSameAfterSavingAndLoading) {
  for (const kernels::WeightTypeInfo& info : quantized_types()) {
    const WeightType type = info.type;
    SCOPED_TRACE(info.name);
    const Quantized made = quantized(GetParam(), type);
    const std::string folder = path("saved");
    const DType other_dtype = dtype_from_name(info.other_dtype);
    made.network.save(folder, {.dtype = other_dtype});
    const Network again = Network::load(folder, {.dropout = false, .form = WeightForm::stored});
    EXPECT_EQ(main_type(again.parameters()), type);
    for (const ParameterSpec& spec : made.network.parameters().specs()) {
      EXPECT_EQ(again.parameters().type(spec.name), made.network.parameters().type(spec.name));
      if (other_dtype != DType::f32 && !can_be_packed(spec)) continue;  // those are rounded now
      EXPECT_EQ(again.parameters().floats(spec.name), made.network.parameters().floats(spec.name))
          << spec.name;
    }
    if (other_dtype == DType::f32) {
      EXPECT_EQ(output_of(again), output_of(made.network));
    }
    EXPECT_LT(again.parameters().bytes(), Network::load(golden(GetParam())).parameters().bytes());
  }
}

TEST_P(QuantizedModels, F16HasTheBitsOfItsFloats) {
  Network::load(golden(GetParam())).save(path("f16"), {.dtype = DType::f16});
  const Network narrow = Network::load(path("f16"), {.dropout = false, .form = WeightForm::stored});
  const Network wide = Network::load(path("f16"), {.dropout = false});
  EXPECT_TRUE(narrow.parameters().is_packed());
  EXPECT_FALSE(wide.parameters().is_packed());
  EXPECT_EQ(output_of(narrow), output_of(wide));
}

TEST_P(QuantizedModels, PackedF32HasTheBitsOfPlainFloats) {
  const Network packed =
      Network::load(golden(GetParam()), {.dropout = false, .form = WeightForm::stored});
  const Network plain = Network::load(golden(GetParam()), {.dropout = false});
  EXPECT_TRUE(packed.parameters().is_packed());
  EXPECT_EQ(main_type(packed.parameters()), WeightType::f32);
  EXPECT_EQ(output_of(packed), output_of(plain));
  packed.save(path("saved"));
  EXPECT_EQ(output_of(Network::load(path("saved"), {.dropout = false})), output_of(plain));
}

// int4 rounds its inputs to 12 bits, which shows little next to what its weights have lost; int8 to
// 8 bits.
TEST_P(QuantizedModels, FloatsOfIntegersCanBeHad) {
  for (const WeightType type : {WeightType::int8, WeightType::int4}) {
    const Quantized made = quantized(GetParam(), type);
    made.network.save(path("saved"));
    const Network floats =
        Network::load(path("saved"), {.dropout = false, .form = WeightForm::floats});
    EXPECT_FALSE(floats.parameters().is_packed());
    for (const ParameterSpec& spec : floats.parameters().specs()) {
      const std::span<const float> values = floats.parameters().values(spec.name);
      EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
                made.network.parameters().floats(spec.name));
    }
    if (type == WeightType::int4) {
      const std::vector<float> original =
          output_of(Network::load(golden(GetParam()), {.dropout = false}));
      const double by_weights = relative_distance(output_of(floats), original);
      EXPECT_LT(relative_distance(output_of(floats), output_of(made.network)), by_weights / 50);
    }
    floats.save(path("floats"));  // an ordinary model again
    EXPECT_EQ(output_of(Network::load(path("floats"), {.dropout = false})), output_of(floats));
  }
}

TEST_P(QuantizedModels, AreNearTheOriginal) {
  const std::vector<float> expected =
      output_of(Network::load(golden(GetParam()), {.dropout = false}));
  const double f16 =
      relative_distance(output_of(quantized(GetParam(), WeightType::f16).network), expected);
  const double int8 =
      relative_distance(output_of(quantized(GetParam(), WeightType::int8).network), expected);
  const double int4 =
      relative_distance(output_of(quantized(GetParam(), WeightType::int4).network), expected);
  EXPECT_LT(f16, 0.005);
  EXPECT_LT(int8, 0.1);
  EXPECT_LT(int4, 0.7);
  EXPECT_LT(f16, int8);
  EXPECT_LT(int8, int4);
}

INSTANTIATE_TEST_SUITE_P(Golden, QuantizedModels,
                         testing::Values("gpt2", "marian", "gpt-neox", "bert-mlm", "t5",
                                         "llama-gqa", "bart"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_F(QuantizeTest, ReportsEveryMatrix) {
  const Quantized made = quantized("gpt2", WeightType::int8, "ffn\\.out");
  ASSERT_FALSE(made.layers.empty());
  EXPECT_EQ(made.layers.front().name, "embedding.tokens");
  bool kept = false;
  for (const QuantizedLayer& layer : made.layers) {
    const bool wide = layer.name.find("ffn.out") != std::string::npos;
    EXPECT_EQ(layer.type, wide ? "f16" : "int8") << layer.name;
    EXPECT_GT(layer.relative_error, 0);
    EXPECT_LT(layer.relative_error, wide ? 5e-4 : 0.02);
    EXPECT_GT(layer.bytes, 0);
    kept = kept || wide;
  }
  EXPECT_TRUE(kept);
  // What is kept wide is f16 in the file too, and comes back as such.
  made.network.save(path("saved"));
  const Network again = Network::load(path("saved"), {.form = WeightForm::stored});
  EXPECT_EQ(again.parameters().type("decoder.0.ffn.out.weight"), WeightType::f16);
  EXPECT_EQ(again.parameters().type("decoder.0.ffn.in.weight"), WeightType::int8);
}

TEST_F(QuantizeTest, RejectsInvalidOptions) {
  expect_error(ErrorCode::invalid_argument, "no regular expression", [] { NameFilter("("); });
  expect_error(ErrorCode::invalid_argument, "keep_wide must not match every matrix",
               [&] { quantized("gpt2", WeightType::int8, "."); });
  expect_error(ErrorCode::invalid_argument, "keep_wide must match the name of a matrix",
               [&] { quantized("gpt2", WeightType::int8, "outptu"); });
  expect_error(ErrorCode::invalid_argument, "got 'int3'", [] { weight_type_from_name("int3"); });
  expect_error(ErrorCode::invalid_argument, "got 'f32'", [] { weight_type_from_name("f32"); });
  EXPECT_FALSE(NameFilter("").matches("embedding.tokens"));
  Network bad = Network::load(golden("gpt2"));
  bad.parameters().values("decoder.0.ffn.in.weight")[3] = 1e6f;
  const NameFilter none("");
  expect_error(ErrorCode::invalid_argument, "decoder.0.ffn.in.weight", [&] {
    quantize(bad, {WeightType::f16, none, pool_});
  });
}

TEST_F(QuantizeTest, IsForInferenceAlone) {
  Quantized made = quantized("gpt2", WeightType::int8);
  expect_error(ErrorCode::unsupported, "cannot be trained", [&] { made.network.add_gradients(); });
  made.network.save(path("saved"));
  expect_error(ErrorCode::unsupported, "must be floats for training",
               [&] { Network::load(path("saved")); });
}

TEST_F(QuantizeTest, DamagedFilesAreRefused) {
  for (const WeightType type : {WeightType::int8, WeightType::int4}) {
    const std::string folder = path("saved");
    quantized("gpt2", type).network.save(folder);
    const std::string matrix = "transformer.h.0.mlp.c_fc.weight";
    const auto load = [&](const auto& change) {
      Network::load(changed(folder, change), {.form = WeightForm::stored});
    };
    const auto find = [](std::vector<TensorView>& views, const std::string& name) {
      return std::find_if(views.begin(), views.end(),
                          [&](const TensorView& view) { return view.name == name; });
    };
    expect_error(ErrorCode::corrupt_file, matrix + ".scale", [&] {
      load([&](auto& views, auto) { views.erase(find(views, matrix + ".scale")); });
    });
    expect_error(ErrorCode::corrupt_file, matrix + ".scale is", [&] {
      load([&](auto& views, auto bytes) {
        TensorView& scale = *find(views, matrix + ".scale");
        scale.shape.front() -= 1;
        scale.bytes =
            bytes.first(static_cast<size_t>(scale.element_count()) * element_bytes(scale.dtype));
      });
    });
    expect_error(ErrorCode::corrupt_file, "not finite", [&] {
      load([&](auto& views, auto bytes) {
        TensorView& scale = *find(views, matrix + ".scale");
        std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
        scale.bytes = bytes.first(scale.bytes.size());
      });
    });
    expect_error(ErrorCode::corrupt_file, matrix + " is", [&] {
      load([&](auto& views, auto bytes) {
        TensorView& numbers = *find(views, matrix);
        numbers.shape.back() += 1;
        numbers.bytes = bytes.first(static_cast<size_t>(numbers.element_count()));
      });
    });
  }
}

TEST_F(QuantizeTest, TheConfigSaysWhatItIs) {
  const std::string folder = path("saved");
  quantized("gpt2", WeightType::int4).network.save(folder);
  Json config = Json::parse(read_text(folder + "/config.json"));
  EXPECT_EQ(config.at("quantization"),
            Json({{"format", "heed"}, {"version", 1}, {"type", "int4"}}));
  for (const Json& other : {Json("int4"), Json({{"format", "gptq"}, {"bits", 4}}),
                            Json({{"format", "heed"}, {"version", 2}, {"type", "int4"}})}) {
    config["quantization"] = other;
    write("saved/config.json", config.dump());
    expect_error(ErrorCode::unsupported, "quantization must be",
                 [&] { Network::load(folder, {.form = WeightForm::stored}); });
  }
  // Integers without the entry are not of this format.
  config.erase("quantization");
  write("saved/config.json", config.dump());
  expect_error(ErrorCode::corrupt_file, "expected",
               [&] { Network::load(folder, {.form = WeightForm::stored}); });
}

}  // namespace
}  // namespace heed
