#include "model/files/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/files/plain_file_name.h"
#include "heed/error.h"
#include "kernels/rows/convert.h"
#include "model/files/file_problems.h"
#include "model/files/safetensors.h"
#include "model/files/torch_file.h"

namespace heed {

namespace {

struct DTypeEntry {
  DType dtype;
  const char* name;
  size_t bytes;
};

// In the order of the enumerators.
constexpr DTypeEntry kDTypes[] = {
    {DType::f32, "f32", 4},      {DType::f16, "f16", 2}, {DType::bf16, "bf16", 2},
    {DType::f64, "f64", 8},      {DType::i64, "i64", 8}, {DType::i32, "i32", 4},
    {DType::i16, "i16", 2},      {DType::i8, "i8", 1},   {DType::u8, "u8", 1},
    {DType::boolean, "bool", 1},
};

const DTypeEntry& entry(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  HEED_CHECK(index < std::size(kDTypes) && kDTypes[index].dtype == dtype, "not a DType");
  return kDTypes[index];
}

// Calls convert(T elements, out, count) for pieces of a tensor's bytes, copied to where a T may be.
template <class T, class Convert>
void for_aligned_pieces(std::span<const std::byte> bytes, float* out, Convert convert) {
  constexpr size_t kPiece = 1024;  // elements; stays in the first-level cache
  std::array<T, kPiece> piece;
  const size_t count = bytes.size() / sizeof(T);
  for (size_t done = 0; done < count; done += kPiece) {
    const size_t n = std::min(kPiece, count - done);
    std::memcpy(piece.data(), bytes.data() + done * sizeof(T), n * sizeof(T));
    convert(piece.data(), out + done, static_cast<int64_t>(n));
  }
}

void f64_to_f32(const double* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

// An index is {"metadata": {…}, "weight_map": {name: shard}}; a few levels more are let pass.
constexpr int kDeepestIndex = 8;
constexpr size_t kLargestIndex = 100'000'000;  // bytes, as for a safetensors header

nlohmann::json parse_index(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() > kLargestIndex)
    throw Error(ErrorCode::corrupt_file, where + ": too large to be an index of shards");
  std::vector<std::unordered_set<std::string>> open_objects;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kDeepestIndex)
      throw Error(ErrorCode::corrupt_file, where + ": nested too deeply to be an index of shards");
    if (event == Event::object_start) open_objects.emplace_back();
    if (event == Event::object_end) open_objects.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_objects.back().insert(key).second)
        throw Error(ErrorCode::corrupt_file, where + ": names " + in_quotes(key) + " twice");
    }
    return true;
  };
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  try {
    return nlohmann::json::parse(text, text + bytes.size(), watch);
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::corrupt_file, where + ": is not valid JSON",
                "the file may have been cut short: copy or download it again");
  }
}

// Tensor name → shard, as the index has it.
std::map<std::string, std::string> read_weight_map(const std::string& index_path) {
  const MappedFile file(index_path);
  const nlohmann::json index = parse_index(file.bytes(), index_path);
  const auto weight_map = index.is_object() ? index.find("weight_map") : index.end();
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    throw Error(ErrorCode::corrupt_file,
                index_path + ": expected an object \"weight_map\" from tensors to files");
  }
  FileProblems problems(index_path);
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string()) {
      problems.add(ErrorCode::corrupt_file, in_quotes(tensor) + " has no file name");
    } else if (!is_plain_file_name(shard.get_ref<const std::string&>())) {
      problems.add(ErrorCode::corrupt_file, in_quotes(tensor) + " is said to be in " +
                                                in_quotes(shard.get_ref<const std::string&>()) +
                                                ", which is not a file of the same folder");
    } else {
      shards.emplace(tensor, shard.get<std::string>());
    }
  }
  problems.throw_if_any();
  return shards;
}

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// By content, since users rename files; by name if the content is of neither format.
TensorTable read_table(std::span<const std::byte> bytes, const std::string& where) {
  if (starts_with(bytes, "version https://git-lfs")) {
    throw Error(ErrorCode::corrupt_file, where + ": holds a Git LFS pointer, not the tensors",
                "run `git lfs pull` in the folder, or download the file itself");
  }
  constexpr size_t kHeader = 8;  // where the header of safetensors starts
  const bool looks_like_safetensors = bytes.size() > kHeader && bytes[kHeader] == std::byte{'{'};
  const bool looks_like_torch = starts_with(bytes, "PK\x03\x04") || starts_with(bytes, "\x80");
  if (looks_like_torch && !looks_like_safetensors) return read_torch_file(bytes, where);
  if (!looks_like_safetensors && where.ends_with(".bin")) return read_torch_file(bytes, where);
  return read_safetensors(bytes, where);
}

}  // namespace

const char* name(DType dtype) { return entry(dtype).name; }

DType dtype_from_name(std::string_view name) {
  for (const DTypeEntry& e : kDTypes) {
    if (e.name == name) return e.dtype;
  }
  throw Error(ErrorCode::internal, "no DType has the name '" + std::string(name) + "'");
}

size_t element_bytes(DType dtype) { return entry(dtype).bytes; }

std::optional<int64_t> checked_element_count(std::span<const int64_t> shape) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t product = 1;  // of the extents that are not zero: strides are made of these
  bool is_empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    is_empty |= extent == 0;
    const int64_t factor = std::max<int64_t>(extent, 1);
    if (product > kMax / factor) return std::nullopt;
    product *= factor;
  }
  return is_empty ? 0 : product;
}

std::optional<int64_t> checked_byte_count(std::span<const int64_t> shape, DType dtype) {
  const std::optional<int64_t> count = checked_element_count(shape);
  const auto size = static_cast<int64_t>(element_bytes(dtype));
  if (!count || *count > std::numeric_limits<int64_t>::max() / size) return std::nullopt;
  return *count * size;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

int64_t TensorView::element_count() const {
  const std::optional<int64_t> count = checked_element_count(shape);
  if (!count) {
    throw Error(ErrorCode::invalid_argument,
                in_quotes(name) + " has the impossible shape " + shape_text(shape));
  }
  return *count;
}

bool TensorView::is_aligned_f32() const {
  return dtype == DType::f32 && reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0;
}

std::span<const float> TensorView::f32() const {
  HEED_CHECK(is_aligned_f32(), "ask is_aligned_f32() first");
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void copy_as_f32(const TensorView& tensor, float* out) {
  const std::optional<int64_t> expected = checked_byte_count(tensor.shape, tensor.dtype);
  HEED_CHECK(expected && static_cast<uint64_t>(*expected) == tensor.bytes.size(),
             "a tensor's bytes differ from its shape");
  switch (tensor.dtype) {
    case DType::f32:
      if (!tensor.bytes.empty()) std::memcpy(out, tensor.bytes.data(), tensor.bytes.size());
      return;
    case DType::f16:
      return for_aligned_pieces<uint16_t>(tensor.bytes, out, kernels::f16_to_f32);
    case DType::bf16:
      return for_aligned_pieces<uint16_t>(tensor.bytes, out, kernels::bf16_to_f32);
    case DType::f64:
      return for_aligned_pieces<double>(tensor.bytes, out, f64_to_f32);
    default:
      throw Error(ErrorCode::unsupported, in_quotes(tensor.name) + " holds " +
                                              heed::name(tensor.dtype) +
                                              ", expected numbers of type f32, f16, bf16 or f64");
  }
}

std::string name_problem(std::string_view name) {
  if (name.empty()) return "a tensor without a name";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control))
    return in_quotes(name) + " has control characters in its name";
  return {};
}

TensorFile TensorFile::open(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // what cannot be examined is reported when it is opened
  if (!fs::is_directory(path, ignored)) return open_file(path);

  constexpr const char* kNames[] = {"model.safetensors", "pytorch_model.bin"};
  std::string looked_for;
  for (const std::string name : kNames) {
    const std::string file = fs::path(path) / name;
    if (fs::exists(file, ignored)) return open_file(file);
    const std::string index = file + ".index.json";
    if (fs::exists(index, ignored)) return open_shards(path, index);
    looked_for += (looked_for.empty() ? "" : ", ") + name + ", " + name + ".index.json";
  }
  throw Error(ErrorCode::not_found, path + ": no tensors here; looked for " + looked_for,
              "give the folder of a model in Hugging Face layout, or the file itself");
}

TensorFile TensorFile::open_file(const std::string& path) {
  TensorFile result;
  const MappedFile& file = result.files_.emplace_back(path);
  result.add(read_table(file.bytes(), path));
  result.sort_names(path);
  return result;
}

TensorFile TensorFile::open_shards(const std::string& folder, const std::string& index_path) {
  const std::map<std::string, std::string> weight_map = read_weight_map(index_path);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) shards.insert(shard);

  FileProblems missing(index_path);
  for (const std::string& shard : shards) {
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::path(folder) / shard, ignored))
      missing.add(ErrorCode::not_found, "the shard " + in_quotes(shard) + " is missing");
  }
  missing.throw_if_any("all shards of the index must be in its folder: download the rest");

  TensorFile result;
  FileProblems problems(index_path);
  for (const std::string& shard : shards) {
    const MappedFile& file = result.files_.emplace_back(std::filesystem::path(folder) / shard);
    TensorTable table = read_table(file.bytes(), file.path());
    // The index decides where several shards hold a tensor of one name.
    std::erase_if(table.tensors, [&](const TensorView& tensor) {
      const auto listed = weight_map.find(tensor.name);
      return listed != weight_map.end() && listed->second != shard;
    });
    result.add(std::move(table));
  }
  result.sort_names(index_path);
  for (const auto& [tensor, shard] : weight_map) {
    if (result.find(tensor) == nullptr)
      problems.add(ErrorCode::corrupt_file, in_quotes(tensor) + " is not in " + in_quotes(shard));
  }
  problems.throw_if_any("the index and the shards are of different models: download both again");
  return result;
}

TensorFile TensorFile::from_bytes(std::vector<std::byte> image, const std::string& where) {
  TensorFile result;
  const std::vector<std::byte>& bytes = result.owned_.emplace_back(std::move(image));
  result.add(read_table(bytes, where));
  result.sort_names(where);
  return result;
}

std::vector<std::string> TensorFile::paths() const {
  std::vector<std::string> paths;
  for (const MappedFile& file : files_) paths.push_back(file.path());
  return paths;
}

void TensorFile::add(TensorTable&& table) {
  std::move(table.tensors.begin(), table.tensors.end(), std::back_inserter(tensors_));
  std::move(table.owned.begin(), table.owned.end(), std::back_inserter(owned_));
  metadata_.merge(table.metadata);
}

void TensorFile::sort_names(const std::string& where) {
  by_name_.resize(tensors_.size());
  for (size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return tensors_[a].name < tensors_[b].name; });
  FileProblems problems(where);
  for (size_t i = 1; i < by_name_.size(); ++i) {
    const std::string& name = tensors_[by_name_[i]].name;
    if (name == tensors_[by_name_[i - 1]].name)
      problems.add(ErrorCode::corrupt_file, in_quotes(name) + " is there twice");
  }
  problems.throw_if_any();
}

const TensorView* TensorFile::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](size_t i, std::string_view key) { return tensors_[i].name < key; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

}  // namespace heed
