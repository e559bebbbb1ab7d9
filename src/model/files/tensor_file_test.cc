#include "model/files/tensor_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "base/files/file_testing.h"
#include "model/files/safetensors.h"
#include "model/files/torch_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;

TEST(DType, NamesAndSizes) {
  for (const auto& [dtype, text, bytes] : {std::tuple{DType::f32, "f32", 4u},
                                           {DType::f16, "f16", 2u},
                                           {DType::bf16, "bf16", 2u},
                                           {DType::f64, "f64", 8u},
                                           {DType::i64, "i64", 8u},
                                           {DType::i32, "i32", 4u},
                                           {DType::i16, "i16", 2u},
                                           {DType::i8, "i8", 1u},
                                           {DType::u8, "u8", 1u},
                                           {DType::boolean, "bool", 1u}}) {
    EXPECT_STREQ(name(dtype), text);
    EXPECT_EQ(dtype_from_name(text), dtype);
    EXPECT_EQ(element_bytes(dtype), bytes);
  }
}

TEST(ElementCount, IsChecked) {
  using Shape = std::vector<int64_t>;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(checked_element_count(Shape{}), 1);
  EXPECT_EQ(checked_element_count(Shape{2, 3, 4}), 24);
  EXPECT_EQ(checked_element_count(Shape{2, 0}), 0);
  EXPECT_EQ(checked_element_count(Shape{kMax, 1}), kMax);
  EXPECT_EQ(checked_element_count(Shape{kMax, 2}), std::nullopt);
  EXPECT_EQ(checked_element_count(Shape{kMax, 0, 2}), std::nullopt);
  EXPECT_EQ(checked_element_count(Shape{-1}), std::nullopt);
  EXPECT_EQ(checked_element_count(Shape{0, -1}), std::nullopt);
  EXPECT_EQ(checked_byte_count(Shape{kMax / 4}, DType::f32), kMax / 4 * 4);
  EXPECT_EQ(checked_byte_count(Shape{kMax / 4 + 1}, DType::f32), std::nullopt);
  expect_error(ErrorCode::invalid_argument, "'w' has the impossible shape [-1, 2]", [] {
    (void)TensorView{"w", DType::f32, {-1, 2}, {}}.element_count();
  });
}

// Bytes at an odd address, as a file may have them.
class CopyAsF32 : public testing::TestWithParam<size_t> {
 protected:
  template <class T>
  std::vector<float> converted(DType dtype, const std::vector<T>& values) {
    buffer_.resize(GetParam() + values.size() * sizeof(T));
    std::ranges::copy(bytes_of(values), buffer_.begin() + static_cast<ptrdiff_t>(GetParam()));
    const TensorView tensor{
        "w", dtype, {static_cast<int64_t>(values.size())}, std::span(buffer_).subspan(GetParam())};
    std::vector<float> out(values.size());
    copy_as_f32(tensor, out.data());
    return out;
  }

  std::vector<std::byte> buffer_;
};

TEST_P(CopyAsF32, EveryFloat) {
  EXPECT_THAT(converted<float>(DType::f32, {1.5f, -2, 1e30f}), ElementsAre(1.5f, -2, 1e30f));
  EXPECT_THAT(converted<double>(DType::f64, {1.5, 0.1}), ElementsAre(1.5f, 0.1f));
  EXPECT_THAT(converted<uint16_t>(DType::f16, {0x3c00, 0xc000, 0x7c00}),
              ElementsAre(1, -2, INFINITY));
  EXPECT_THAT(converted<uint16_t>(DType::bf16, {0x3f80, 0xc000, 0xff80}),
              ElementsAre(1, -2, -INFINITY));
  EXPECT_TRUE(std::isnan(converted<float>(DType::f32, {NAN})[0]));
  EXPECT_TRUE(converted<float>(DType::f32, {}).empty());
}

TEST_P(CopyAsF32, MoreThanOnePiece) {
  std::vector<uint16_t> halves(5000);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i % 7 << 7);
  const std::vector<float> values = converted(DType::bf16, halves);
  for (size_t i = 0; i < halves.size(); ++i)
    ASSERT_EQ(values[i], std::ldexp(i % 7 ? 1 : 0, static_cast<int>(i % 7) - 127));
}

TEST_P(CopyAsF32, IntegersAreNoWeights) {
  expect_error(ErrorCode::unsupported, "'w' holds i64, expected numbers of type f32",
               [&] { converted<int64_t>(DType::i64, {1}); });
}

INSTANTIATE_TEST_SUITE_P(Offsets, CopyAsF32, testing::Values(0, 1, 2, 4));

TEST(TensorView, KnowsWhetherItIsAligned) {
  const std::vector<float> values = {1, 2, 3};
  const auto bytes = bytes_of(values);
  EXPECT_TRUE((TensorView{"w", DType::f32, {3}, bytes}).is_aligned_f32());
  EXPECT_FALSE((TensorView{"w", DType::i32, {3}, bytes}).is_aligned_f32());
  EXPECT_FALSE((TensorView{"w", DType::f32, {2}, bytes.subspan(1, 8)}).is_aligned_f32());
  EXPECT_THAT((TensorView{"w", DType::f32, {3}, bytes}).f32(), ElementsAre(1, 2, 3));
}

class TensorFileTest : public FolderTest {
 protected:
  std::string save(const std::string& name, const std::vector<std::string>& tensors,
                   const std::map<std::string, std::string>& metadata = {}) const {
    std::vector<TensorView> views;
    for (const std::string& tensor : tensors)
      views.push_back({tensor, DType::f32, {2}, bytes_of(values_)});
    write_safetensors(path(name), views, metadata);
    return path(name);
  }

  // A pytorch_model.bin with one tensor, a transposed view.
  std::string save_torch(const std::string& name, const std::string& tensor) const {
    const std::string view =
        pickled::tensor(pickled::storage("FloatStorage", "0", 4), 0, {2, 2}, {1, 2});
    return write(
        name, make_torch_file(pickled::program(pickled::state_dict({pickled::text(tensor), view})),
                              {text_of(bytes_of(std::vector<float>{1, 2, 3, 4}))}));
  }

  std::vector<float> values_ = {1, 2};
};

TEST_F(TensorFileTest, FindsByName) {
  const TensorFile file = TensorFile::open(save("x.safetensors", {"b", "a", "c"}));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "b");
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_NE(file.find(name), nullptr);
    EXPECT_EQ(file.find(name)->name, name);
  }
  EXPECT_EQ(file.find(""), nullptr);
  EXPECT_EQ(file.find("bb"), nullptr);
  EXPECT_EQ(file.find("d"), nullptr);
}

TEST_F(TensorFileTest, MovesKeepTheViews) {
  save_torch("x.bin", "w");
  TensorFile first = TensorFile::open(path("x.bin"));
  const TensorView* tensor = first.find("w");
  const TensorFile second = std::move(first);
  EXPECT_EQ(second.find("w"), tensor);
  EXPECT_THAT(tensor->f32(), ElementsAre(1, 3, 2, 4));
}

TEST_F(TensorFileTest, FromBytes) {
  const std::string content = read_text(save("x.safetensors", {"w"}));
  const auto bytes = as_bytes(content);
  const TensorFile file = TensorFile::from_bytes({bytes.begin(), bytes.end()}, "memory");
  ASSERT_NE(file.find("w"), nullptr);
  EXPECT_EQ(file.find("w")->f32()[1], 2);
  expect_error(ErrorCode::corrupt_file, "memory: too short",
               [] { TensorFile::from_bytes({}, "memory"); });
}

TEST_F(TensorFileTest, AFileIsKnownByItsContent) {
  save("weights.bin", {"s"});
  EXPECT_NE(TensorFile::open(path("weights.bin")).find("s"), nullptr);
  save_torch("weights", "t");
  EXPECT_NE(TensorFile::open(path("weights")).find("t"), nullptr);
  expect_error(ErrorCode::corrupt_file, "is not a file of torch.save",
               [&] { TensorFile::open(write("junk.bin", "junk junk junk")); });
  expect_error(ErrorCode::corrupt_file, "not a safetensors file",
               [&] { TensorFile::open(write("junk", "junk junk junk")); });
  expect_error(ErrorCode::corrupt_file, "holds a Git LFS pointer", [&] {
    TensorFile::open(write("x.safetensors", "version https://git-lfs.github.com/spec/v1\noid …"));
  });
}

TEST_F(TensorFileTest, AFolderHasAnOrderOfPreference) {
  expect_error(ErrorCode::not_found,
               "no tensors here; looked for model.safetensors, model.safetensors.index.json, "
               "pytorch_model.bin, pytorch_model.bin.index.json",
               [&] { TensorFile::open(folder_); });
  expect_error(ErrorCode::not_found, "missing: cannot be opened",
               [&] { TensorFile::open(path("missing")); });

  save_torch("shard.bin", "torch shard");
  write("pytorch_model.bin.index.json", R"({"weight_map":{"torch shard":"shard.bin"}})");
  EXPECT_NE(TensorFile::open(folder_).find("torch shard"), nullptr);
  save_torch("pytorch_model.bin", "torch");
  EXPECT_NE(TensorFile::open(folder_).find("torch"), nullptr);
  save("shard.safetensors", {"shard"});
  write("model.safetensors.index.json", R"({"weight_map":{"shard":"shard.safetensors"}})");
  EXPECT_NE(TensorFile::open(folder_).find("shard"), nullptr);
  save("model.safetensors", {"whole"});
  EXPECT_NE(TensorFile::open(folder_).find("whole"), nullptr);
}

TEST_F(TensorFileTest, ShardsAreOneFile) {
  save("1.safetensors", {"a", "b"}, {{"who", "first"}});
  save("2.safetensors", {"c", "b"}, {{"who", "second"}, {"more", "yes"}});
  write("model.safetensors.index.json",
        R"({"metadata":{"total_size":24},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  const TensorFile file = TensorFile::open(folder_);
  EXPECT_EQ(file.tensors().size(), 3u) << "b is in both shards, the index decides; c is not listed";
  EXPECT_EQ(file.metadata().at("who"), "first");
  EXPECT_EQ(file.metadata().at("more"), "yes");
}

TEST_F(TensorFileTest, ShardsThatDoNotFitTheIndex) {
  const std::string index = "model.safetensors.index.json";
  save("1.safetensors", {"a", "c"});
  save("2.safetensors", {"b", "c"});
  write(index, R"({"weight_map":{"a":"1.safetensors","b":"3.safetensors","d":"4.safetensors"}})");
  expect_error(ErrorCode::not_found,
               "2 problems: the shard '3.safetensors' is missing; the shard '4.safetensors' is",
               [&] { TensorFile::open(folder_); });
  write(index, R"({"weight_map":{"a":"1.safetensors","z":"1.safetensors"}})");
  expect_error(ErrorCode::corrupt_file, "'z' is not in '1.safetensors'",
               [&] { TensorFile::open(folder_); });
  write(index, R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  expect_error(ErrorCode::corrupt_file, "'c' is there twice", [&] { TensorFile::open(folder_); });
}

TEST_F(TensorFileTest, AnIndexStaysInItsFolder) {
  std::filesystem::create_directory(path("model"));
  save("x", {"a"});
  for (const std::string name :
       {"../x", "/etc/passwd", "", ".", "..", "a/b", "..\\\\x", "a\\u0000"}) {
    write("model/model.safetensors.index.json", R"({"weight_map":{"a":")" + name + "\"}}");
    expect_error(ErrorCode::corrupt_file, "which is not a file of the same folder",
                 [&] { TensorFile::open(path("model")); });
  }
}

TEST_F(TensorFileTest, AnIndexThatIsNone) {
  const auto refused = [&](const std::string& content, const std::string& message) {
    write("model.safetensors.index.json", content);
    expect_error(ErrorCode::corrupt_file, message, [&] { TensorFile::open(folder_); });
  };
  refused("", "is not valid JSON");
  refused("{", "is not valid JSON");
  refused("[]", "expected an object \"weight_map\"");
  refused("{}", "expected an object \"weight_map\"");
  refused(R"({"weight_map":{}})", "expected an object \"weight_map\"");
  refused(R"({"weight_map":[]})", "expected an object \"weight_map\"");
  refused(R"({"weight_map":{"a":1}})", "'a' has no file name");
  refused(R"({"weight_map":{"a":"x","a":"y"}})", "names 'a' twice");
  refused(std::string(1000, '['), "nested too deeply");
}

}  // namespace
}  // namespace heed
