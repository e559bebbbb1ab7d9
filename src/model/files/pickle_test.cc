#include "model/files/pickle.h"

#include <cstdint>

#include "base/files/file_testing.h"
#include "model/files/torch_testing.h"

namespace heed {
namespace {

using namespace std::string_literals;  // pickles have zero bytes

constexpr std::string_view kKnown[] = {"collections OrderedDict"};

Pickle read(const std::string& bytes) { return Pickle(as_bytes(bytes), kKnown, "x.bin"); }

const PickleObject& root_object(const Pickle& pickle) { return *pickle.object(pickle.root()); }

TEST(Pickle, ReadsPlainValues) {
  const std::string bytes = pickled::program(pickled::tuple(
      {"N", "\x88", "\x89", "K\xff", "M\xff\xff", "J\xff\xff\xff\xff", "\x8a\x00"s, "\x8a\x01\xff"s,
       "\x8a\x03\x00\x00\x01"s, "G\x3f\xf8\0\0\0\0\0\0"s, pickled::text("word")}));
  const Pickle pickle = read(bytes);
  const auto& items = root_object(pickle).items;
  ASSERT_EQ(items.size(), 11u);
  EXPECT_TRUE(std::holds_alternative<PickleNone>(items[0]));
  EXPECT_EQ(std::get<bool>(items[1]), true);
  EXPECT_EQ(std::get<bool>(items[2]), false);
  EXPECT_EQ(std::get<int64_t>(items[3]), 255);
  EXPECT_EQ(std::get<int64_t>(items[4]), 65535);
  EXPECT_EQ(std::get<int64_t>(items[5]), -1);
  EXPECT_EQ(std::get<int64_t>(items[6]), 0);
  EXPECT_EQ(std::get<int64_t>(items[7]), -1);
  EXPECT_EQ(std::get<int64_t>(items[8]), 65536);
  EXPECT_EQ(std::get<double>(items[9]), 1.5);
  EXPECT_EQ(std::get<std::string_view>(items[10]), "word");
}

TEST(Pickle, ReadsContainersAndTheMemo) {
  // [(1, 2), {1: 2}, 1], with the 1 kept in the memo
  const std::string bytes = pickled::program("](K\x01q\0K\x02\x86}h\0K\x02sj\0\0\0\0e"s);
  const Pickle pickle = read(bytes);
  const auto& list = root_object(pickle);
  EXPECT_EQ(list.kind, PickleObject::Kind::list);
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(pickle.object(list.items[0])->kind, PickleObject::Kind::tuple);
  EXPECT_EQ(pickle.object(list.items[1])->kind, PickleObject::Kind::dict);
  for (const PickleValue& value : {list.items[0], list.items[1]}) {
    const auto& items = pickle.object(value)->items;
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(std::get<int64_t>(items[0]), 1);
    EXPECT_EQ(std::get<int64_t>(items[1]), 2);
  }
  EXPECT_EQ(std::get<int64_t>(list.items[2]), 1);
}

TEST(Pickle, WritesCallsDownInsteadOfCalling) {
  const std::string bytes = pickled::program(pickled::state_dict({pickled::text("k"), "K\x05"}));
  const Pickle pickle = read(bytes);
  const PickleObject& dict = root_object(pickle);
  EXPECT_EQ(dict.kind, PickleObject::Kind::call);
  EXPECT_EQ(dict.function.module, "collections");
  EXPECT_EQ(dict.function.name, "OrderedDict");
  EXPECT_TRUE(pickle.object(dict.arguments).items.empty());
  ASSERT_EQ(dict.items.size(), 2u);
  EXPECT_EQ(std::get<std::string_view>(dict.items[0]), "k");
  EXPECT_EQ(std::get<int64_t>(dict.items[1]), 5);
}

// The classic attack: (os.system)("…").
TEST(Pickle, RefusesToNameAnythingElse) {
  const auto refused = [](const std::string& module, const std::string& name) {
    const std::string bytes = pickled::program(
        pickled::call(pickled::global(module, name), {pickled::text("touch pwned")}));
    expect_error(ErrorCode::unsupported, "asks for '" + module + "." + name + "'",
                 [&] { read(bytes); });
    expect_error(ErrorCode::unsupported, "Heed does not run code from model files",
                 [&] { read(bytes); });
  };
  refused("os", "system");
  refused("posix", "system");
  refused("builtins", "eval");
  refused("__builtin__", "exec");
  refused("subprocess", "Popen");
  refused("collections", "OrderedDict2");
  refused("collections", "");
  refused("", "OrderedDict");
  refused("collections OrderedDict", "");
}

// Other opcodes that import or call: INST, OBJ, NEWOBJ, STACK_GLOBAL, NEWOBJ_EX, EXT1, and DUP,
// STRING and the like, which torch.save does not write.
TEST(Pickle, RefusesOtherOpcodes) {
  for (const std::string opcode : {"i", "o", "\x81", "\x93", "\x92", "\x82", "2", "S", "V", "I",
                                   "B", "\x8c", "\x94", "\x95", "P", "\xff"}) {
    expect_error(ErrorCode::unsupported, "Heed does not run code from model files",
                 [&] { read("\x80\x02(" + opcode + "os\nsystem\n."); });
  }
  expect_error(ErrorCode::unsupported, "protocol 4", [] { read("\x80\x04N."); });
}

TEST(Pickle, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::string& value, const std::string& message) {
    expect_error(ErrorCode::corrupt_file, "x.bin: its pickle is damaged: " + message,
                 [&] { read(pickled::program(value)); });
  };
  refused("", "it ends with values left over");
  refused("NN", "it ends with values left over");
  refused("N(", "it ends with values left over");
  refused("t", "a mark is missing");
  refused("N\x86", "a value is missing");
  refused("N(\x85", "a value is missing");  // the value is behind the mark
  refused("q\x01", "a value is missing");
  refused("h\x01", "it uses a value that it never had");
  refused("NNa", "it appends to what is not a list");
  refused("NNNs", "it sets items of what is not a dictionary");
  refused("}(Nu", "a key has no value");
  refused("N)R", "a call has no name or no arguments");
  refused("ccollections\nOrderedDict\nNR", "a call has no name or no arguments");
  refused("NNb", "it gives attributes to what is not an object");
  refused("Q", "a value is missing");
  refused("\x8a\x09" + std::string(9, '\x01'), "a number is too large");
}

TEST(Pickle, TruncatedAtEveryLength) {
  const std::string bytes = pickled::program(pickled::state_dict(
      {pickled::text("a"), "J\x01\x02\x03\x04", pickled::text("b"), "\x8a\x02zz"}));
  read(bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut(bytes.data(), length);
    EXPECT_THROW(read(cut), Error) << length;
  }
}

// A billion laughs: each tuple holds the one before ten times, but only by reference.
TEST(Pickle, SharedValuesAreNotCopied) {
  std::string value = ")q\x01";
  for (int i = 0; i < 1000; ++i) {
    std::string tuple = "(";
    for (int k = 0; k < 10; ++k) tuple += "h\x01";
    value += tuple + "tq\x01\x86q\x01";
  }
  EXPECT_EQ(root_object(read(pickled::program(value))).items.size(), 2u);
}

// A list in itself is no problem, because nothing walks through it.
TEST(Pickle, CyclesAreInert) {
  const std::string bytes = pickled::program(
      "]q\x01h\x01"
      "a");
  const Pickle pickle = read(bytes);
  EXPECT_EQ(pickle.object(root_object(pickle).items[0]), &root_object(pickle));
}

TEST(Pickle, SizesAreLimited) {
  expect_error(ErrorCode::corrupt_file, "too many values at once",
               [] { read(pickled::program(std::string(2 << 20, 'N'))); });
  expect_error(ErrorCode::corrupt_file, "nests too deeply",
               [] { read(pickled::program(std::string(2 << 20, '('))); });
  expect_error(ErrorCode::unsupported, "more than any dictionary of tensors needs",
               [] { read(std::string(33 << 20, 'N')); });
}

}  // namespace
}  // namespace heed
