#include "model/files/torch_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/error.h"
#include "model/files/file_problems.h"
#include "model/files/pickle.h"
#include "model/files/zip_archive.h"

namespace heed {

namespace {

constexpr const char* kSaveAgain = "save it again with a current PyTorch, or as safetensors";

// The only names that a dictionary of tensors is made of.
constexpr std::string_view kOrderedDict = "OrderedDict";
constexpr std::string_view kRebuildTensor = "_rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "_rebuild_parameter";
constexpr std::string_view kGlobals[] = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    "torch FloatStorage",
    "torch HalfStorage",
    "torch BFloat16Storage",
    "torch DoubleStorage",
    "torch LongStorage",
    "torch IntStorage",
    "torch ShortStorage",
    "torch CharStorage",
    "torch ByteStorage",
    "torch BoolStorage",
};

std::optional<DType> storage_dtype(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kStorages[] = {
      {"FloatStorage", DType::f32},   {"HalfStorage", DType::f16}, {"BFloat16Storage", DType::bf16},
      {"DoubleStorage", DType::f64},  {"LongStorage", DType::i64}, {"IntStorage", DType::i32},
      {"ShortStorage", DType::i16},   {"CharStorage", DType::i8},  {"ByteStorage", DType::u8},
      {"BoolStorage", DType::boolean}};
  for (const auto& [storage, dtype] : kStorages) {
    if (storage == name) return dtype;
  }
  return std::nullopt;
}

struct Storage {
  DType dtype;
  int64_t elements;
  std::span<const std::byte> bytes;
};

// A view of a storage, in elements.
struct StridedView {
  int64_t offset = 0, count = 0;
  std::vector<int64_t> shape, strides;
};

bool is_contiguous(const StridedView& view) {
  int64_t expected = 1;
  for (size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] == 1)
      continue;  // its stride is never used, and PyTorch leaves anything there
    if (view.strides[i] != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

// Where the last element of a non-empty view lies, counted from its first; nothing on overflow.
std::optional<int64_t> last_element(const StridedView& view) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t last = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const int64_t steps = view.shape[i] - 1;
    if (steps > 0 && view.strides[i] > (kMax - last) / steps) return std::nullopt;
    last += steps * view.strides[i];
  }
  return last;
}

// Copies a view's elements in the order of its shape. The view lies within `storage`.
std::vector<std::byte> gather(const StridedView& view, std::span<const std::byte> storage,
                              size_t size) {
  std::vector<std::byte> out(static_cast<size_t>(view.count) * size);
  std::vector<int64_t> index(view.shape.size());
  int64_t at = view.offset;
  for (size_t done = 0; done < out.size(); done += size) {
    std::memcpy(&out[done], &storage[static_cast<size_t>(at) * size], size);
    for (size_t i = view.shape.size(); i-- > 0;) {
      at += view.strides[i];
      if (++index[i] < view.shape[i]) break;
      at -= view.strides[i] * view.shape[i];
      index[i] = 0;
    }
  }
  return out;
}

// Turns the pickle's calls into tensors. Members throw an Error without the file's name: the caller
// gathers them.
class StateDict {
 public:
  StateDict(const Pickle& pickle, std::span<const ZipEntry> entries, std::string prefix,
            size_t file_bytes)
      : pickle_(pickle),
        entries_(entries),
        prefix_(std::move(prefix)),
        copies_left_(kMostCopied * file_bytes) {}

  // Key, value, key, value …; null when the pickle is no dictionary.
  const std::vector<PickleValue>* items() const {
    const PickleObject* root = pickle_.object(pickle_.root());
    const bool is_dict =
        root != nullptr && (root->kind == PickleObject::Kind::dict || is_call(*root, kOrderedDict));
    return is_dict ? &root->items : nullptr;
  }

  TensorView tensor(std::string_view name, const PickleValue& value, TensorTable& table) {
    const PickleObject* call = pickle_.object(value);
    if (call != nullptr && is_call(*call, kRebuildParameter)) {
      const auto& arguments = pickle_.object(call->arguments).items;
      call = arguments.empty() ? nullptr : pickle_.object(arguments[0]);
    }
    if (call == nullptr || !is_call(*call, kRebuildTensor))
      throw Error(ErrorCode::unsupported, "is not a tensor");
    // storage, offset, shape, strides, requires_grad, backward_hooks, and since 1.13 metadata
    const auto& arguments = pickle_.object(call->arguments).items;
    if (arguments.size() < 4) refuse("has too few arguments");

    const Storage storage = read_storage(arguments[0]);
    const StridedView view = read_view(arguments, storage);
    TensorView tensor{
        .name = std::string(name), .dtype = storage.dtype, .shape = view.shape, .bytes = {}};
    const size_t size = element_bytes(storage.dtype);
    const size_t bytes = static_cast<size_t>(view.count) * size;
    if (is_contiguous(view)) {
      if (bytes > 0) tensor.bytes = storage.bytes.subspan(view.offset * size, bytes);
      return tensor;
    }
    // Views may overlap and repeat, so a small file could ask for any amount of memory.
    if (bytes > copies_left_)
      throw Error(ErrorCode::unsupported,
                  "is a strided view that expands to far more data than its storage");
    copies_left_ -= bytes;
    tensor.bytes = table.owned.emplace_back(gather(view, storage.bytes, size));
    return tensor;
  }

 private:
  static constexpr size_t kMostCopied = 2;  // times the file's length

  [[noreturn]] static void refuse(const std::string& why) {
    throw Error(ErrorCode::corrupt_file, why);
  }

  static bool is_call(const PickleObject& object, std::string_view function) {
    return object.kind == PickleObject::Kind::call && object.function.name == function;
  }

  // ("storage", torch.FloatStorage, "0", "cpu", 3200): kind, type, entry, device, elements.
  Storage read_storage(const PickleValue& value) const {
    const PickleObject* persistent = pickle_.object(value);
    const PickleObject* id = nullptr;
    if (persistent != nullptr && persistent->kind == PickleObject::Kind::persistent)
      id = pickle_.object(persistent->items[0]);
    if (id == nullptr || id->kind != PickleObject::Kind::tuple || id->items.size() < 5)
      refuse("has no storage");
    const auto* type = std::get_if<PickleGlobal>(&id->items[1]);
    const auto* key = std::get_if<std::string_view>(&id->items[2]);
    const auto* elements = std::get_if<int64_t>(&id->items[4]);
    const std::optional<DType> dtype = type == nullptr ? std::nullopt : storage_dtype(type->name);
    if (!dtype || key == nullptr || elements == nullptr) refuse("has no storage");

    const std::string name = prefix_ + "data/" + std::string(*key);
    const ZipEntry* entry = find_entry(entries_, name);
    if (entry == nullptr) refuse("is a view of " + in_quotes(name) + ", which is not in the file");
    const int64_t shape[] = {*elements};
    const std::optional<int64_t> needed = checked_byte_count(shape, *dtype);
    if (!needed || static_cast<uint64_t>(*needed) > entry->bytes.size()) {
      refuse("needs " + std::to_string(*elements) + " elements of " + in_quotes(name) +
             ", which has " + std::to_string(entry->bytes.size()) + " bytes");
    }
    return {.dtype = *dtype, .elements = *elements, .bytes = entry->bytes};
  }

  std::vector<int64_t> read_extents(const PickleValue& value) const {
    const PickleObject* tuple = pickle_.object(value);
    if (tuple == nullptr || tuple->kind != PickleObject::Kind::tuple) refuse("has no shape");
    constexpr size_t kMostExtents = 64;  // PyTorch's own limit
    if (tuple->items.size() > kMostExtents) refuse("has too many extents");
    std::vector<int64_t> extents;
    for (const PickleValue& item : tuple->items) {
      const auto* extent = std::get_if<int64_t>(&item);
      if (extent == nullptr || *extent < 0) refuse("has an impossible shape");
      extents.push_back(*extent);
    }
    return extents;
  }

  StridedView read_view(const std::vector<PickleValue>& arguments, const Storage& storage) const {
    const auto* offset = std::get_if<int64_t>(&arguments[1]);
    StridedView view{.shape = read_extents(arguments[2]), .strides = read_extents(arguments[3])};
    const std::optional<int64_t> count = checked_element_count(view.shape);
    if (offset == nullptr || *offset < 0 || view.shape.size() != view.strides.size() || !count)
      refuse("has an impossible shape");
    view.offset = *offset;
    view.count = *count;
    if (view.count == 0) {
      view.offset = 0;
      return view;
    }
    const std::optional<int64_t> last = last_element(view);
    if (!last || view.offset >= storage.elements || *last >= storage.elements - view.offset)
      refuse("reaches past the end of its storage");
    return view;
  }

  const Pickle& pickle_;
  std::span<const ZipEntry> entries_;
  std::string prefix_;  // "archive/"
  size_t copies_left_;  // bytes
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_container(std::span<const std::byte> file, const std::string& where) {
  const std::string_view text = as_text(file);
  if (text.starts_with("PK")) return;
  if (text.starts_with('\x80')) {
    throw Error(ErrorCode::unsupported,
                where + ": is in the format that PyTorch wrote before version 1.6", kSaveAgain);
  }
  throw Error(ErrorCode::corrupt_file, where + ": is not a file of torch.save",
              "give a pytorch_model.bin or a .safetensors file");
}

// "archive/", whatever the archive is called.
std::string find_prefix(std::span<const ZipEntry> entries, const std::string& where) {
  constexpr std::string_view kPickle = "data.pkl";
  for (const ZipEntry& entry : entries) {
    if (!entry.name.ends_with(kPickle)) continue;
    const std::string_view prefix = entry.name.substr(0, entry.name.size() - kPickle.size());
    if (prefix.ends_with('/') && prefix.find('/') == prefix.size() - 1) return std::string(prefix);
  }
  throw Error(ErrorCode::corrupt_file, where + ": is a ZIP archive without data.pkl",
              "give a file of torch.save, or a .safetensors file");
}

}  // namespace

TensorTable read_torch_file(std::span<const std::byte> file, const std::string& where) {
  check_container(file, where);
  const std::vector<ZipEntry> entries = read_zip_archive(file, where);
  const std::string prefix = find_prefix(entries, where);
  if (const ZipEntry* order = find_entry(entries, prefix + "byteorder");
      order != nullptr && as_text(order->bytes) != "little") {
    throw Error(ErrorCode::unsupported, where + ": its numbers are not little-endian", kSaveAgain);
  }

  const Pickle pickle(find_entry(entries, prefix + "data.pkl")->bytes, kGlobals, where);
  StateDict state_dict(pickle, entries, prefix, file.size());
  const std::vector<PickleValue>* items = state_dict.items();
  if (items == nullptr) {
    throw Error(ErrorCode::unsupported,
                where + ": holds something else than a dictionary of tensors",
                "save the model's state_dict()");
  }

  TensorTable table;
  FileProblems problems(where);
  for (size_t i = 0; i + 1 < items->size(); i += 2) {
    const auto* name = std::get_if<std::string_view>(&(*items)[i]);
    if (name == nullptr) {
      problems.add(ErrorCode::unsupported, "a key of the dictionary is not a text");
      continue;
    }
    if (const std::string problem = name_problem(*name); !problem.empty()) {
      problems.add(ErrorCode::corrupt_file, problem);
      continue;
    }
    try {
      table.tensors.push_back(state_dict.tensor(*name, (*items)[i + 1], table));
    } catch (const Error& error) {
      problems.add(error.code(), in_quotes(*name) + " " + error.what());
    }
  }
  problems.throw_if_any("save the model's state_dict() again, or as safetensors");
  return table;
}

}  // namespace heed
