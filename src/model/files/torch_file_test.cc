#include "model/files/torch_file.h"

#include <cstdint>
#include <limits>

#include "base/files/file_testing.h"
#include "model/files/torch_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorTable read(const std::string& file) { return read_torch_file(as_bytes(file), "x.bin"); }

std::string floats(const std::vector<float>& values) { return text_of(bytes_of(values)); }

std::vector<float> as_floats(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.element_count()));
  copy_as_f32(tensor, values.data());
  return values;
}

const std::string kSix = floats({0, 1, 2, 3, 4, 5});

// A file with one tensor "w", a view of the six floats.
std::string one_tensor(int64_t offset, const std::vector<int64_t>& shape,
                       const std::vector<int64_t>& strides) {
  const std::string tensor =
      pickled::tensor(pickled::storage("FloatStorage", "0", 6), offset, shape, strides);
  return make_torch_file(pickled::program(pickled::state_dict({pickled::text("w"), tensor})),
                         {kSix});
}

std::string with_value(const std::string& value) {
  return make_torch_file(pickled::program(pickled::state_dict({pickled::text("w"), value})),
                         {kSix});
}

TEST(TorchFile, ReadsADictionaryOfTensors) {
  const std::string storage = pickled::storage("FloatStorage", "0", 6);
  const std::string half = pickled::storage("HalfStorage", "1", 2);
  const std::string pickle = pickled::program(pickled::state_dict(
      {pickled::text("a"), pickled::tensor(storage, 0, {2, 3}, {3, 1}),                //
       pickled::text("b"), pickled::parameter(pickled::tensor(storage, 4, {2}, {1})),  //
       pickled::text("c"), pickled::tensor(half, 0, {2, 1}, {1, 77}),                  //
       pickled::text("d"), pickled::tensor(storage, 5, {}, {}),                        //
       pickled::text("e"), pickled::tensor(storage, 0, {0, 3}, {3, 1})}));
  for (const bool zip64 : {false, true}) {
    const std::string file = make_torch_file(pickle, {kSix, std::string("\0\x3c\0\x40", 4)}, zip64);
    const TensorTable table = read(file);
    ASSERT_EQ(table.tensors.size(), 5u);
    EXPECT_TRUE(table.owned.empty());
    EXPECT_EQ(table.tensors[0].name, "a");
    EXPECT_THAT(table.tensors[0].shape, ElementsAre(2, 3));
    EXPECT_THAT(as_floats(table.tensors[0]), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(as_floats(table.tensors[1]), ElementsAre(4, 5));
    EXPECT_EQ(table.tensors[2].dtype, DType::f16);
    EXPECT_THAT(as_floats(table.tensors[2]), ElementsAre(1, 2));
    EXPECT_THAT(as_floats(table.tensors[3]), ElementsAre(5));
    EXPECT_TRUE(as_floats(table.tensors[4]).empty());
  }
}

TEST(TorchFile, KnowsEveryStorage) {
  const std::pair<const char*, DType> storages[] = {
      {"FloatStorage", DType::f32},   {"HalfStorage", DType::f16}, {"BFloat16Storage", DType::bf16},
      {"DoubleStorage", DType::f64},  {"LongStorage", DType::i64}, {"IntStorage", DType::i32},
      {"ShortStorage", DType::i16},   {"CharStorage", DType::i8},  {"ByteStorage", DType::u8},
      {"BoolStorage", DType::boolean}};
  for (const auto& [name, dtype] : storages) {
    const std::string tensor = pickled::tensor(pickled::storage(name, "0", 3), 1, {2}, {1});
    const std::string file =
        make_torch_file(pickled::program(pickled::state_dict({pickled::text("w"), tensor})),
                        {std::string(3 * element_bytes(dtype), 'x')});
    const TensorTable table = read(file);
    EXPECT_EQ(table.tensors[0].dtype, dtype);
    EXPECT_EQ(table.tensors[0].bytes.size(), 2 * element_bytes(dtype));
  }
}

TEST(TorchFile, AnOrdinaryDictionaryWillDo) {
  const std::string tensor = pickled::tensor(pickled::storage("FloatStorage", "0", 6), 0, {6}, {1});
  const std::string file = make_torch_file(
      pickled::program(pickled::instruction("}", pickled::text("w") + tensor + "s")), {kSix});
  EXPECT_EQ(read(file).tensors.size(), 1u);
}

TEST(TorchFile, OtherViewsAreCopied) {
  const std::string transposed = one_tensor(0, {3, 2}, {1, 3});
  TensorTable table = read(transposed);
  EXPECT_THAT(as_floats(table.tensors[0]), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(table.owned.size(), 1u);
  const TensorTable moved = std::move(table);
  EXPECT_THAT(as_floats(moved.tensors[0]), ElementsAre(0, 3, 1, 4, 2, 5));

  EXPECT_THAT(as_floats(read(one_tensor(1, {3}, {2})).tensors[0]), ElementsAre(1, 3, 5));
  EXPECT_THAT(as_floats(read(one_tensor(4, {2, 2}, {0, 1})).tensors[0]), ElementsAre(4, 5, 4, 5));
  EXPECT_THAT(as_floats(read(one_tensor(0, {2, 1, 2}, {4, 9, 1})).tensors[0]),
              ElementsAre(0, 1, 4, 5));
}

TEST(TorchFile, ViewsStayWithinTheirStorage) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto refused = [](int64_t offset, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& strides, const std::string& message) {
    const std::string file = one_tensor(offset, shape, strides);
    expect_error(ErrorCode::corrupt_file, "x.bin: 'w' " + message, [&] { read(file); });
  };
  refused(0, {7}, {1}, "reaches past");
  refused(1, {6}, {1}, "reaches past");
  refused(6, {1}, {1}, "reaches past");
  refused(kMax, {6}, {1}, "reaches past");
  refused(0, {2}, {6}, "reaches past");
  refused(0, {2, 2}, {3, 3}, "reaches past");
  refused(0, {2, 2}, {kMax, kMax}, "reaches past");
  refused(0, {3}, {kMax / 2 + 1}, "reaches past");
  refused(0, {kMax, kMax}, {1, 1}, "has an impossible shape");
  refused(0, {kMax}, {1}, "reaches past");
  refused(-1, {6}, {1}, "has an impossible shape");
  refused(0, {-6}, {1}, "has an impossible shape");
  refused(5, {2}, {-1}, "has an impossible shape");
  refused(0, {6}, {}, "has an impossible shape");
  refused(0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1), "has too many extents");
}

// One float, repeated by a stride of zero: any amount of memory from a small file.
TEST(TorchFile, RepeatingViewsCannotFillTheMemory) {
  const std::string file = one_tensor(0, {1'000'000'000'000}, {0});
  expect_error(ErrorCode::unsupported,
               "'w' is a strided view that expands to far more data than its storage",
               [&] { read(file); });
}

TEST(TorchFile, StoragesAreChecked) {
  const auto refused = [](const std::string& storage, const std::string& message) {
    const std::string file = with_value(pickled::tensor(storage, 0, {6}, {1}));
    expect_error(ErrorCode::corrupt_file, "x.bin: 'w' " + message, [&] { read(file); });
  };
  refused(pickled::storage("FloatStorage", "9", 6), "is a view of 'archive/data/9', which is not");
  refused(pickled::storage("FloatStorage", "0", 7), "needs 7 elements of 'archive/data/0', which");
  refused(pickled::storage("DoubleStorage", "0", 6), "needs 6 elements");
  refused(pickled::storage("FloatStorage", "0", -1), "needs -1 elements");
  refused(pickled::storage("FloatStorage", "0", int64_t{1} << 62), "needs 4611686018427387904");
  refused(pickled::storage("FloatStorage", "../data.pkl", 6), "is a view of");
  refused("N", "has no storage");
  refused("NQ", "has no storage");
  refused(")Q", "has no storage");
}

TEST(TorchFile, NamesWhatIsNoTensor) {
  const auto refused = [](const std::string& value) {
    const std::string file = with_value(value);
    expect_error(ErrorCode::unsupported, "x.bin: 'w' is not a tensor", [&] { read(file); });
  };
  refused("K\x05");
  refused(pickled::ordered_dict());
  refused("}");
  refused(pickled::parameter("N"));
  refused(pickled::parameter(pickled::parameter("N")));
  const std::string list = make_torch_file(pickled::program("]"), {});
  expect_error(ErrorCode::unsupported, "something else than a dictionary of tensors",
               [&] { read(list); });
  const std::string key = make_torch_file(pickled::program("}K\x01Ns"), {});
  expect_error(ErrorCode::unsupported, "a key of the dictionary is not a text", [&] { read(key); });
}

TEST(TorchFile, RunsNothing) {
  const std::string file =
      with_value(pickled::call(pickled::global("os", "system"), {pickled::text("touch pwned")}));
  try {
    read(file);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("asks for 'os.system'"));
    EXPECT_THAT(error.what(), HasSubstr("Heed does not run code from model files"));
    EXPECT_THAT(error.hint(), HasSubstr("safetensors"));
  }
}

TEST(TorchFile, OtherContainers) {
  expect_error(ErrorCode::unsupported, "before version 1.6",
               [] { read("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."); });
  expect_error(ErrorCode::corrupt_file, "is not a file of torch.save", [] { read("hello"); });
  expect_error(ErrorCode::corrupt_file, "is not a file of torch.save", [] { read(""); });
  expect_error(ErrorCode::corrupt_file, "without data.pkl",
               [] { read(make_zip({{.name = "a/b/data.pkl", .content = ""}})); });
  expect_error(ErrorCode::unsupported, "not little-endian", [] {
    read(make_zip({{.name = "a/data.pkl", .content = pickled::program("}")},
                   {.name = "a/byteorder", .content = "big"}}));
  });
}

TEST(TorchFile, TruncatedAtEveryLength) {
  const std::string file = one_tensor(0, {6}, {1});
  read(file);
  for (size_t length = 0; length < file.size(); ++length) {
    const std::string cut(file.data(), length);
    expect_error(ErrorCode::corrupt_file, "x.bin: ", [&] { read(cut); });
  }
}

// Any byte may be wrong: the file is read or refused, and nothing else.
TEST(TorchFile, EveryByteChanged) {
  const std::string good = one_tensor(1, {2, 2}, {1, 2});
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff', static_cast<char>(good[at] ^ 0x10)}) {
      std::string file = good;
      file[at] = value;
      try {
        for (const TensorView& tensor : read(file).tensors) text_of(tensor.bytes);
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
      }
    }
  }
}

// What torch.save wrote, against the same model's safetensors.
TEST(TorchFile, GoldenFilesAgree) {
  const TensorFile torch = TensorFile::open(kGoldenFolder + "models/gpt2/pytorch_model.bin");
  const TensorFile safetensors = TensorFile::open(kGoldenFolder + "models/gpt2/model.safetensors");
  EXPECT_GT(safetensors.tensors().size(), 20u);
  for (const TensorView& expected : safetensors.tensors()) {
    const TensorView* found = torch.find(expected.name);
    ASSERT_NE(found, nullptr) << expected.name;
    EXPECT_EQ(found->dtype, expected.dtype);
    EXPECT_EQ(found->shape, expected.shape);
    EXPECT_EQ(text_of(found->bytes), text_of(expected.bytes)) << expected.name;
    EXPECT_TRUE(found->is_aligned_f32()) << expected.name;
  }
}

}  // namespace
}  // namespace heed
