#include "model/files/safetensors.h"

#include <cstdint>
#include <limits>

#include "base/files/file_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string image(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

TensorTable read(const std::string& file) {
  return read_safetensors(std::as_bytes(std::span(file)), "x.safetensors");
}

void expect_refused(const std::string& header, const std::string& data, const std::string& message,
                    ErrorCode code = ErrorCode::corrupt_file) {
  const std::string file = image(header, data);
  expect_error(code, message, [&] { read(file); });
}

// {"a": {…}}, with one tensor's entry.
std::string entry(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

TEST(ReadSafetensors, ShowsTensorsAndMetadata) {
  const std::string file = image(
      R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"__metadata__":{"format":"pt"},)"
      R"("e":{"dtype":"BF16","shape":[0,7],"data_offsets":[8,8]},)"
      R"("s":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}}   )",
      "abcdefghi");
  const TensorTable table = read(file);
  ASSERT_EQ(table.tensors.size(), 3u);
  EXPECT_EQ(table.tensors[0].name, "w");
  EXPECT_EQ(table.tensors[0].dtype, DType::f32);
  EXPECT_THAT(table.tensors[0].shape, ElementsAre(1, 2));
  EXPECT_EQ(text_of(table.tensors[0].bytes), "abcdefgh");
  EXPECT_EQ(table.tensors[1].dtype, DType::bf16);
  EXPECT_EQ(table.tensors[1].element_count(), 0);
  EXPECT_TRUE(table.tensors[1].bytes.empty());
  EXPECT_EQ(table.tensors[2].dtype, DType::boolean);
  EXPECT_EQ(table.tensors[2].element_count(), 1);
  EXPECT_EQ(text_of(table.tensors[2].bytes), "i");
  EXPECT_THAT(table.metadata, ElementsAre(Pair("format", "pt")));
}

TEST(ReadSafetensors, AnEmptyDictionaryIsAFile) {
  EXPECT_TRUE(read(image("{}", "")).tensors.empty());
}

TEST(ReadSafetensors, HeaderLengths) {
  expect_error(ErrorCode::corrupt_file, "too short", [] { read("1234567"); });
  std::string file = image("{}", "");
  file[0] = 3;
  expect_error(ErrorCode::corrupt_file, "should be 3 bytes, but only 2 are there",
               [&] { read(file); });
  file[4] = 1;
  expect_error(ErrorCode::corrupt_file, "not a safetensors file", [&] { read(file); });
  for (size_t i = 0; i < 8; ++i) file[i] = '\xff';
  expect_error(ErrorCode::corrupt_file, "not a safetensors file", [&] { read(file); });
  expect_refused("", "", "not a JSON object");
}

TEST(ReadSafetensors, HeadersThatAreNoHeaders) {
  expect_refused("[]", "", "not a JSON object");
  expect_refused(" {}", "", "not a JSON object");
  expect_refused("{", "", "not valid JSON");
  expect_refused("{} {}", "", "not valid JSON");
  expect_refused("{\"\xff\":{}}", "", "not valid JSON");
  expect_refused(R"({"a":1})", "", "the entry of 'a' is not an object");
  expect_refused(R"({"a":[1]})", "", "the entry of 'a' is not an object");
  expect_refused(R"({"__metadata__":{"k":1}})", "", "metadata 'k' is not a text");
  expect_refused(R"({"__metadata__":{"k":{}}})", "", "metadata 'k' is not a text");
  expect_refused(R"({"__metadata__":{"k":"1","k":"2"}})", "", "has 'k' twice in its metadata");
  expect_refused("{\"a\":" + std::string(100000, '['), "", "'a' is not an object");
}

TEST(ReadSafetensors, EntriesThatAreNoEntries) {
  const std::string dtype = R"("dtype":"U8")", shape = R"("shape":[1])";
  const std::string offsets = R"("data_offsets":[0,1])";
  read(image(entry(offsets + "," + shape + "," + dtype), "x"));
  expect_refused(entry(shape + "," + offsets), "x", "'a' has no dtype");
  expect_refused(entry(dtype + "," + offsets), "x", "'a' has no shape");
  expect_refused(entry(dtype + "," + shape), "x", "'a' has no data_offsets");
  expect_refused(entry(dtype + "," + dtype), "x", "'a' has dtype twice");
  expect_refused(entry(R"("color":"red")"), "x", "'a' has an unknown field 'color'");
  expect_refused(entry(R"("dtype":7)"), "x", "'a' has a dtype that makes no sense");
  expect_refused(entry(R"("shape":[-1])"), "x", "'a' has a shape that makes no sense");
  expect_refused(entry(R"("shape":[1.5])"), "x", "'a' has a shape that makes no sense");
  expect_refused(entry(R"("shape":[99999999999999999999])"), "x", "shape that makes no sense");
  expect_refused(entry(R"("shape":[1e999])"), "x", "not valid JSON");
  expect_refused(entry(R"("shape":[[1]])"), "x", "'a' has a shape that makes no sense");
  expect_refused(entry(R"("data_offsets":[0])"), "x", "'a' should have two data_offsets");
  expect_refused(entry(R"("data_offsets":[0,1,2])"), "x", "'a' should have two data_offsets");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  expect_refused(entry("\"shape\":[" + ones + "]"), "x", "'a' has more than 64 extents");
}

std::string described(const std::string& dtype, const std::string& shape, uint64_t begin,
                      uint64_t end) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(ReadSafetensors, NumbersThatContradictEachOther) {
  const auto refused = [](const std::string& dtype, const std::string& shape, uint64_t begin,
                          uint64_t end, const std::string& message) {
    expect_refused("{\"a\":" + described(dtype, shape, begin, end) + "}", "12345678", message);
  };
  const uint64_t huge = std::numeric_limits<uint64_t>::max();
  refused("F32", "[3]", 0, 8, "'a' has 8 bytes, but F32 [3] needs 12");
  refused("F32", "[]", 0, 8, "'a' has 8 bytes, but F32 [] needs 4");
  refused("F32", "[4]", 0, 16, "'a' ends at byte 16 of 8");
  refused("F32", "[2]", huge - 7, huge, "'a' ends at byte 18446744073709551615 of 8");
  refused("F32", "[2]", 8, 0, "'a' ends before it begins");
  refused("F99", "[2]", 0, 8, "'a' is of unknown dtype 'F99'");
  refused("f32", "[2]", 0, 8, "'a' is of unknown dtype 'f32'");
  refused("U8", "[18446744073709551615]", 0, 8, "impossible shape [18446744073709551615]");
  refused("U8", "[4294967296,4294967296]", 0, 8, "impossible shape");    // 2^64, which wraps to 0
  refused("F32", "[4611686018427387904]", 0, 0, "impossible shape");     // 2^64 bytes
  refused("U8", "[0,4294967296,4294967296]", 0, 0, "impossible shape");  // empty, but its strides
  refused("U8", "[4294967296,0,4294967296]", 0, 0, "impossible shape");
  expect_refused("{\"a\":" + described("F8_E4M3", "[8]", 0, 8) + "}", "12345678",
                 "'a' is of dtype F8_E4M3, which Heed does not read", ErrorCode::unsupported);
}

TEST(ReadSafetensors, Names) {
  const std::string u8 = described("U8", "[0]", 0, 0);
  expect_refused("{\"a\":" + u8 + ",\"a\":" + u8 + "}", "", "names 'a' twice");
  expect_refused("{\"\":" + u8 + "}", "", "a tensor without a name");
  expect_refused("{\"\\u001b[2J\":" + u8 + "}", "", "'\\x1b[2J' has control characters");
}

TEST(ReadSafetensors, EveryByteBelongsToOneTensor) {
  const auto two = [](uint64_t begin_a, uint64_t end_a, uint64_t begin_b, uint64_t end_b) {
    const auto u8 = [](uint64_t begin, uint64_t end) {
      return described("U8", "[" + std::to_string(end - begin) + "]", begin, end);
    };
    return "{\"b\":" + u8(begin_b, end_b) + ",\"a\":" + u8(begin_a, end_a) + "}";
  };
  EXPECT_EQ(read(image(two(0, 4, 4, 8), "12345678")).tensors.size(), 2u);
  expect_refused(two(0, 5, 4, 8), "12345678", "'a' and 'b' overlap");
  expect_refused(two(0, 8, 2, 4), "12345678", "'a' and 'b' overlap");
  expect_refused(two(0, 8, 0, 8), "12345678", "overlap");
  expect_refused(two(0, 3, 4, 8), "12345678", "1 bytes of data at 3 belong to no tensor");
  expect_refused(two(1, 4, 4, 8), "12345678", "1 bytes of data at 0 belong to no tensor");
  expect_refused(two(0, 4, 4, 6), "12345678", "2 bytes of data at 6 belong to no tensor");
  expect_refused("{}", "12345678", "8 bytes of data at 0 belong to no tensor");
}

TEST(ReadSafetensors, SaysAllThatIsWrong) {
  std::string header = "{";
  for (int i = 0; i < 8; ++i)
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":" + described("F99", "[0]", 0, 0);
  expect_refused(header + "}", "", "x.safetensors: 8 problems: '0' is of unknown dtype");
  expect_refused(header + "}", "", "'4' is of unknown dtype 'F99'; and 3 more");
}

TEST(ReadSafetensors, TruncatedAtEveryLength) {
  const std::string file = image(
      "{\"a\":" + described("F32", "[2]", 0, 8) + ",\"b\":" + described("U8", "[3]", 8, 11) + "}",
      "12345678abc");
  read(file);
  for (size_t length = 0; length < file.size(); ++length) {
    // A copy: an access past the end is then seen by the address sanitizer.
    const std::string cut(file.data(), length);
    expect_error(ErrorCode::corrupt_file, "x.safetensors: ", [&] { read(cut); });
  }
  expect_error(ErrorCode::corrupt_file, "belong to no tensor", [&] { read(file + "d"); });
}

class WriteSafetensors : public FolderTest {
 protected:
  std::vector<float> floats_ = {1, 2, std::numeric_limits<float>::quiet_NaN(), 4, 5, 6};
  std::vector<uint16_t> halves_ = {7, 8, 9};
  std::vector<uint8_t> flags_ = {0, 1, 1, 0, 1};
  TensorView wide_{"wide", DType::f32, {2, 3}, bytes_of(floats_)};
  TensorView half_{"half \"quoted\" é", DType::f16, {3}, bytes_of(halves_)};
  TensorView flag_{"flag", DType::boolean, {5}, bytes_of(flags_)};
  TensorView scalar_{"scalar", DType::f32, {}, bytes_of(floats_).first(4)};

  static void expect_same(const TensorFile& file, std::span<const TensorView> tensors) {
    EXPECT_EQ(file.tensors().size(), tensors.size());
    for (const TensorView& tensor : tensors) {
      const TensorView* found = file.find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(found->dtype, tensor.dtype);
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_EQ(text_of(found->bytes), text_of(tensor.bytes)) << tensor.name;
    }
  }
};

TEST_F(WriteSafetensors, ReadsBackTheSame) {
  const std::vector<TensorView> tensors = {flag_, half_, wide_, scalar_};
  write_safetensors(path("a.safetensors"), tensors, {{"step", "12"}});
  const TensorFile file = TensorFile::open(path("a.safetensors"));
  expect_same(file, tensors);
  EXPECT_THAT(file.metadata(), UnorderedElementsAre(Pair("format", "pt"), Pair("step", "12")));
  EXPECT_THAT(file_names(), ElementsAre("a.safetensors"));
}

TEST_F(WriteSafetensors, KeepsTheOrderAndTheAlignment) {
  const std::vector<TensorView> tensors = {flag_, scalar_, half_, wide_};
  write_safetensors(path("a.safetensors"), tensors);
  const std::string content = read_text(path("a.safetensors"));
  EXPECT_EQ(static_cast<uint8_t>(content[0]) % 8, 0) << "the length of the header";
  const TensorFile file = TensorFile::open(path("a.safetensors"));
  const auto all = file.tensors();
  EXPECT_EQ(all[0].name, "scalar");
  EXPECT_EQ(all[1].name, "wide");
  EXPECT_EQ(all[2].name, half_.name);
  EXPECT_EQ(all[3].name, "flag");
  EXPECT_TRUE(all[0].is_aligned_f32());
  EXPECT_TRUE(all[1].is_aligned_f32());
  EXPECT_EQ(all[1].f32()[3], 4);
}

TEST_F(WriteSafetensors, NoTensorsAreAFileToo) {
  write_safetensors(path("a.safetensors"), {});
  EXPECT_TRUE(TensorFile::open(path("a.safetensors")).tensors().empty());
}

// Whatever Hugging Face wrote and Heed writes again has the same tensors.
TEST_F(WriteSafetensors, GoldenFilesSurvive) {
  const TensorFile original = TensorFile::open(kGoldenFolder + "models/gpt2/model.safetensors");
  EXPECT_GT(original.tensors().size(), 20u);
  write_safetensors(path("a.safetensors"), original.tensors(), original.metadata());
  const TensorFile copy = TensorFile::open(path("a.safetensors"));
  expect_same(copy, original.tensors());
  EXPECT_EQ(copy.metadata(), original.metadata());
}

TEST_F(WriteSafetensors, RefusesTensorsThatCouldNotBeRead) {
  const auto refused = [&](const std::vector<TensorView>& tensors, const std::string& message) {
    expect_error(ErrorCode::invalid_argument, message,
                 [&] { write_safetensors(path("a.safetensors"), tensors); });
    EXPECT_FALSE(std::filesystem::exists(path("a.safetensors")));
    EXPECT_TRUE(file_names().empty());
  };
  TensorView bad = wide_;
  refused({wide_, wide_}, "'wide' is given twice");
  bad.name = "";
  refused({bad}, "a tensor without a name");
  bad.name = "__metadata__";
  refused({bad}, "'__metadata__' is not a name that a tensor may have");
  bad.name = "\xff";
  refused({bad}, "is not UTF-8");
  bad = wide_;
  bad.shape = {7};
  refused({bad}, "'wide' has 24 bytes, which f32 [7] does not");
  bad.shape = {-1, -6};
  refused({bad}, "'wide' has 24 bytes, which f32 [-1, -6] does not");
}

TEST_F(WriteSafetensors, AFolderThatIsNotThere) {
  expect_error(ErrorCode::not_found, "cannot be created: No such file or directory",
               [&] { write_safetensors(path("no/a.safetensors"), {}); });
}

TEST_F(WriteSafetensors, OneFileWhenItFits) {
  const std::vector<TensorView> tensors = {wide_, half_, flag_};
  write_safetensors_folder(folder_, tensors, 1 << 20);
  EXPECT_THAT(file_names(), ElementsAre("model.safetensors"));
  expect_same(TensorFile::open(folder_), tensors);
}

TEST_F(WriteSafetensors, ShardsAndAnIndex) {
  const std::vector<TensorView> tensors = {wide_, half_, flag_, scalar_};  // 24, 6, 5 and 4 bytes
  write_safetensors_folder(folder_, tensors, 11);
  EXPECT_THAT(
      file_names(),
      UnorderedElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                           "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  EXPECT_THAT(read_text(path("model.safetensors.index.json")), HasSubstr("\"total_size\": 39"));
  expect_same(TensorFile::open(folder_), tensors);
  EXPECT_EQ(TensorFile::open(path("model-00002-of-00003.safetensors")).tensors().size(), 2u);
}

// A reader prefers model.safetensors: an old one must not hide new shards, nor the other way round.
TEST_F(WriteSafetensors, RemovesWhatItSupersedes) {
  write("config.json", "{}");
  write("model-extra.safetensors", "not ours");
  write_safetensors_folder(folder_, std::vector{wide_}, 100);
  write_safetensors_folder(folder_, std::vector{half_, flag_}, 6);
  expect_same(TensorFile::open(folder_), std::vector{half_, flag_});
  write_safetensors_folder(folder_, std::vector{half_, flag_, scalar_}, 6);
  expect_same(TensorFile::open(folder_), std::vector{half_, flag_, scalar_});
  EXPECT_FALSE(std::filesystem::exists(path("model-00001-of-00002.safetensors")));
  write_safetensors_folder(folder_, std::vector{wide_}, 100);
  EXPECT_THAT(file_names(),
              UnorderedElementsAre("config.json", "model-extra.safetensors", "model.safetensors"));
}

TEST_F(WriteSafetensors, AFailureLeavesTheFolderAsItWas) {
  write_safetensors_folder(folder_, std::vector{wide_}, 100);
  TensorView bad = half_;
  bad.name = "\xff";
  expect_error(ErrorCode::invalid_argument, "UTF-8", [&] {
    write_safetensors_folder(folder_, std::vector{flag_, bad}, 5);
  });
  EXPECT_THAT(file_names(), ElementsAre("model.safetensors"));
  expect_same(TensorFile::open(folder_), std::vector{wide_});
}

}  // namespace
}  // namespace heed
