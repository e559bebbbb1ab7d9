#include "model/files/pickle.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "heed/error.h"
#include "model/files/file_problems.h"
#include "model/files/little_endian.h"

namespace heed {

namespace {

// Real ones have about 150 bytes a tensor. The limits keep a hostile pickle, whose every byte may
// make an object, from taking more than a few hundred megabytes.
constexpr size_t kLargestPickle = size_t{32} << 20;
constexpr size_t kMostObjects = size_t{1} << 22;
constexpr size_t kDeepestStack = size_t{1} << 20;

constexpr int kProtocol = 2;  // what torch.save writes

// Opcodes by their names in Python's pickletools.
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kGlobal = 'c',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kReduce = 'R',
  kBuild = 'b',
  kBinPersId = 'Q',
  kProto = 0x80,
};

// Executes nothing but the stack discipline.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::span<const std::string_view> globals,
         const std::string& where)
      : rest_(bytes), globals_(globals), where_(where) {}

  PickleValue read() {
    if (rest_.size() > kLargestPickle) {
      throw Error(ErrorCode::unsupported, where_ + ": its pickle has " +
                                              std::to_string(rest_.size()) +
                                              " bytes, more than any dictionary of tensors needs");
    }
    while (true) {
      const auto opcode = number<unsigned char>();
      if (opcode == kStop) {
        if (stack_.size() != 1 || !marks_.empty()) refuse("it ends with values left over");
        return stack_.back();
      }
      step(opcode);
    }
  }

  std::vector<PickleObject> take_objects() { return std::move(objects_); }

 private:
  using Kind = PickleObject::Kind;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::corrupt_file, where_ + ": its pickle is damaged: " + why,
                "copy or download the file again");
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case kProto:
        return check_protocol(number<unsigned char>());
      case kNone:
        return push(PickleNone{});
      case kNewTrue:
        return push(true);
      case kNewFalse:
        return push(false);
      case kBinInt:
        return push(int64_t{number<int32_t>()});
      case kBinInt1:
        return push(int64_t{number<uint8_t>()});
      case kBinInt2:
        return push(int64_t{number<uint16_t>()});
      case kLong1:
        return push(long1());
      case kBinFloat:
        return push(big_endian_double());
      case kBinUnicode:
        return push(text(number<uint32_t>()));
      case kGlobal:
        return push(global());
      case kBinPut:
        return put(number<uint8_t>());
      case kLongBinPut:
        return put(number<uint32_t>());
      case kBinGet:
        return get(number<uint8_t>());
      case kLongBinGet:
        return get(number<uint32_t>());
      case kMark:
        if (marks_.size() == kDeepestStack) refuse("it nests too deeply");
        return marks_.push_back(stack_.size());
      case kEmptyTuple:
        return push_object({.kind = Kind::tuple});
      case kTuple:
        return push_object({.kind = Kind::tuple, .items = pop_to_mark()});
      case kTuple1:
        return push_object({.kind = Kind::tuple, .items = pop_many(1)});
      case kTuple2:
        return push_object({.kind = Kind::tuple, .items = pop_many(2)});
      case kTuple3:
        return push_object({.kind = Kind::tuple, .items = pop_many(3)});
      case kEmptyList:
        return push_object({.kind = Kind::list});
      case kAppend:
        return append(pop_many(1));
      case kAppends:
        return append(pop_to_mark());
      case kEmptyDict:
        return push_object({.kind = Kind::dict});
      case kSetItem:
        return set_items(pop_many(2));
      case kSetItems:
        return set_items(pop_to_mark());
      case kReduce:
        return reduce();
      case kBuild:
        return build();
      case kBinPersId:
        return push_object({.kind = Kind::persistent, .items = pop_many(1)});
      default:
        refuse_opcode(opcode);
    }
  }

  // --- the bytes

  std::span<const std::byte> take(size_t count) {
    if (count > rest_.size()) refuse("it ends too early");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  template <class T>
  T number() {
    return load_little_endian<T>(take(sizeof(T)).data());
  }

  std::string_view text(size_t length) {
    const auto bytes = take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string_view line() {
    const auto end = std::find(rest_.begin(), rest_.end(), std::byte{'\n'});
    if (end == rest_.end()) refuse("it ends too early");
    const std::string_view content = text(static_cast<size_t>(end - rest_.begin()));
    take(1);
    return content;
  }

  // An integer of a given number of bytes, two's complement.
  int64_t long1() {
    const auto bytes = take(number<uint8_t>());
    if (bytes.size() > sizeof(int64_t)) refuse("a number is too large");
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= uint64_t{std::to_integer<uint8_t>(bytes[i])} << (8 * i);
    const size_t unused_bits = 64 - 8 * bytes.size();
    if (bytes.empty()) return 0;
    return static_cast<int64_t>(value << unused_bits) >> unused_bits;
  }

  double big_endian_double() {
    uint64_t bits = 0;
    for (const std::byte byte : take(sizeof(double)))
      bits = bits << 8 | std::to_integer<uint64_t>(byte);
    return std::bit_cast<double>(bits);
  }

  // --- what is not read

  void check_protocol(int protocol) const {
    if (protocol == kProtocol) return;
    throw Error(ErrorCode::unsupported,
                where_ + ": its pickle is of protocol " + std::to_string(protocol) +
                    ", expected 2, which torch.save writes by itself",
                "save it again without a pickle_protocol of your own, or as safetensors");
  }

  [[noreturn]] void refuse_opcode(unsigned char opcode) const {
    throw Error(ErrorCode::unsupported,
                where_ + ": its pickle has an instruction, number " + std::to_string(opcode) +
                    ", that a dictionary of tensors does not need; Heed does not run code from "
                    "model files",
                "save the model's state_dict() with torch.save, or as safetensors");
  }

  PickleGlobal global() {
    const std::string_view module = line(), name = line();
    const auto is_it = [&](std::string_view known) {
      return known.size() == module.size() + 1 + name.size() && known.starts_with(module) &&
             known[module.size()] == ' ' && known.ends_with(name);
    };
    if (std::any_of(globals_.begin(), globals_.end(), is_it)) return {module, name};
    throw Error(ErrorCode::unsupported,
                where_ + ": its pickle asks for " +
                    in_quotes(std::string(module) + "." + std::string(name)) +
                    ", which is no part of a dictionary of tensors; Heed does not run code from "
                    "model files",
                "if you trust the file's origin, save its state_dict() again, or as safetensors; "
                "if not, do not open it elsewhere either");
  }

  // --- the stack

  void push(PickleValue value) {
    if (stack_.size() == kDeepestStack) refuse("it has too many values at once");
    stack_.push_back(value);
  }

  void push_object(PickleObject object) {
    if (objects_.size() == kMostObjects) refuse("it has too many objects");
    objects_.push_back(std::move(object));
    push(PickleReference{static_cast<uint32_t>(objects_.size() - 1)});
  }

  std::vector<PickleValue> pop_from(size_t begin) {
    std::vector<PickleValue> values(stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin);
    return values;
  }

  // Values below the last mark are out of reach until the mark is gone.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  std::vector<PickleValue> pop_many(size_t count) {
    if (stack_.size() - floor() < count) refuse("a value is missing");
    return pop_from(stack_.size() - count);
  }

  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const size_t begin = marks_.back();
    marks_.pop_back();
    return pop_from(begin);
  }

  PickleObject* top_object() {
    if (stack_.size() == floor()) refuse("a value is missing");
    const auto* reference = std::get_if<PickleReference>(&stack_.back());
    return reference == nullptr ? nullptr : &objects_[reference->index];
  }

  void put(uint32_t index) {
    if (stack_.size() == floor()) refuse("a value is missing");
    memo_[index] = stack_.back();
  }

  void get(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("it uses a value that it never had");
    push(found->second);
  }

  // --- the objects

  void append(const std::vector<PickleValue>& values) {
    PickleObject* list = top_object();
    if (list == nullptr || list->kind != Kind::list) refuse("it appends to what is not a list");
    list->items.insert(list->items.end(), values.begin(), values.end());
  }

  void set_items(const std::vector<PickleValue>& values) {
    PickleObject* dict = top_object();
    if (dict == nullptr || (dict->kind != Kind::dict && dict->kind != Kind::call))
      refuse("it sets items of what is not a dictionary");
    if (values.size() % 2 != 0) refuse("a key has no value");
    dict->items.insert(dict->items.end(), values.begin(), values.end());
  }

  void reduce() {
    const std::vector<PickleValue> both = pop_many(2);
    const auto* function = std::get_if<PickleGlobal>(&both[0]);
    const auto* arguments = std::get_if<PickleReference>(&both[1]);
    if (function == nullptr || arguments == nullptr ||
        objects_[arguments->index].kind != Kind::tuple)
      refuse("a call has no name or no arguments");
    push_object({.kind = Kind::call, .function = *function, .arguments = *arguments});
  }

  // Attributes of an object: torch.save keeps the versions of modules there. Not needed.
  void build() {
    pop_many(1);
    if (top_object() == nullptr) refuse("it gives attributes to what is not an object");
  }

  std::span<const std::byte> rest_;
  std::span<const std::string_view> globals_;
  const std::string& where_;

  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint32_t, PickleValue> memo_;
  std::vector<PickleObject> objects_;
};

}  // namespace

Pickle::Pickle(std::span<const std::byte> bytes, std::span<const std::string_view> globals,
               const std::string& where) {
  Reader reader(bytes, globals, where);
  root_ = reader.read();
  objects_ = reader.take_objects();
}

}  // namespace heed
