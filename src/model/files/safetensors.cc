#include "model/files/safetensors.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/files/atomic_file.h"
#include "heed/error.h"
#include "model/files/file_problems.h"
#include "model/files/little_endian.h"

namespace heed {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;  // the reference implementation's own limit
constexpr size_t kMostExtents = 64;               // PyTorch's own limit
constexpr const char* kMetadataKey = "__metadata__";
constexpr const char* kTryAgain = "the file may have been cut short: copy or download it again";

// "F32" and so on; "BOOL".
std::string safetensors_name(DType dtype) {
  std::string text = name(dtype);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::optional<DType> dtype_from_safetensors_name(const std::string& text) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64, DType::i32,
                            DType::i16, DType::i8, DType::u8, DType::boolean}) {
    if (text == safetensors_name(dtype)) return dtype;
  }
  return std::nullopt;
}

// Types of the format that Heed has no use for.
bool is_foreign_dtype(const std::string& text) {
  static constexpr std::string_view kForeign[] = {
      "U16", "U32", "U64", "C64", "F4", "F6_E2M3", "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E8M0"};
  return std::find(std::begin(kForeign), std::end(kForeign), text) != std::end(kForeign);
}

// A tensor as the header has it; nothing about the numbers is checked yet.
struct HeaderEntry {
  std::string name, dtype;
  std::vector<uint64_t> shape, offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// A SAX reader of the header, so that a hostile header costs no more memory than its length. Member
// names are nlohmann::json's; false stops parsing.
class HeaderReader {
 public:
  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;  // why it stopped

  bool start_object(size_t) {
    switch (place_) {
      case Place::outside:
        return go(Place::header);
      case Place::header:
        if (key_ == kMetadataKey) return go(Place::metadata);
        entries.emplace_back().name = key_;
        return go(Place::tensor);
      default:
        return refuse_value();
    }
  }

  bool key(std::string& text) {
    key_ = text;
    if (place_ == Place::header) {
      if (!names_.insert(text).second) return refuse("names " + in_quotes(text) + " twice");
    } else if (place_ == Place::metadata) {
      if (metadata.count(text) > 0)
        return refuse("has " + in_quotes(text) + " twice in its metadata");
    } else {
      bool* seen = field();
      if (seen == nullptr) return refuse(current() + " has an unknown field " + in_quotes(text));
      if (std::exchange(*seen, true)) return refuse(current() + " has " + text + " twice");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      const HeaderEntry& entry = entries.back();
      if (!entry.has_dtype) return refuse(current() + " has no dtype");
      if (!entry.has_shape) return refuse(current() + " has no shape");
      if (!entry.has_offsets) return refuse(current() + " has no data_offsets");
    }
    return go(place_ == Place::header ? Place::outside : Place::header);
  }

  bool start_array(size_t) {
    if (place_ == Place::tensor && key_ == "shape") return go(Place::shape);
    if (place_ == Place::tensor && key_ == "data_offsets") return go(Place::offsets);
    return refuse_value();
  }

  bool end_array() {
    if (place_ == Place::offsets && entries.back().offsets.size() != 2)
      return refuse(current() + " should have two data_offsets");
    return go(Place::tensor);
  }

  bool number_unsigned(uint64_t value) {
    if (place_ == Place::shape) {
      if (entries.back().shape.size() == kMostExtents)
        return refuse(current() + " has more than " + std::to_string(kMostExtents) + " extents");
      entries.back().shape.push_back(value);
      return true;
    }
    if (place_ == Place::offsets) {
      if (entries.back().offsets.size() == 2)
        return refuse(current() + " should have two data_offsets");
      entries.back().offsets.push_back(value);
      return true;
    }
    return refuse_value();
  }

  bool string(std::string& text) {
    if (place_ == Place::metadata) {
      metadata.emplace(key_, std::move(text));
      return true;
    }
    if (place_ == Place::tensor && key_ == "dtype") {
      entries.back().dtype = std::move(text);
      return true;
    }
    return refuse_value();
  }

  // Negative numbers, fractions, and numbers too large for 64 bits.
  bool number_integer(int64_t) { return refuse_value(); }
  bool number_float(double, const std::string&) { return refuse_value(); }
  bool null() { return refuse_value(); }
  bool boolean(bool) { return refuse_value(); }
  bool binary(nlohmann::json::binary_t&) { return refuse_value(); }

  template <class Exception>
  bool parse_error(size_t position, const std::string&, const Exception&) {
    return refuse("its header is not valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place { outside, header, metadata, tensor, shape, offsets };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool refuse(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool refuse_value() {
    if (place_ == Place::outside) return refuse("its header is not a JSON object");
    if (place_ == Place::metadata) return refuse("metadata " + in_quotes(key_) + " is not a text");
    if (place_ == Place::header)
      return refuse("the entry of " + in_quotes(key_) + " is not an object");
    return refuse(current() + " has a " + key_ + " that makes no sense");
  }
  std::string current() const { return in_quotes(entries.back().name); }
  bool* field() {
    HeaderEntry& entry = entries.back();
    if (key_ == "dtype") return &entry.has_dtype;
    if (key_ == "shape") return &entry.has_shape;
    if (key_ == "data_offsets") return &entry.has_offsets;
    return nullptr;
  }

  Place place_ = Place::outside;
  std::string key_;
  std::unordered_set<std::string> names_;
};

std::string extent_text(std::span<const uint64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// The bytes of a tensor as its header entry claims them; throws nothing, reports into `problems`.
std::optional<TensorView> check_entry(const HeaderEntry& entry, std::span<const std::byte> data,
                                      FileProblems& problems) {
  const auto refuse = [&](ErrorCode code, const std::string& why) {
    problems.add(code, why);
    return std::nullopt;
  };
  if (const std::string problem = name_problem(entry.name); !problem.empty())
    return refuse(ErrorCode::corrupt_file, problem);

  const std::optional<DType> dtype = dtype_from_safetensors_name(entry.dtype);
  if (!dtype && is_foreign_dtype(entry.dtype)) {
    return refuse(ErrorCode::unsupported, in_quotes(entry.name) + " is of dtype " + entry.dtype +
                                              ", which Heed does not read");
  }
  if (!dtype) {
    return refuse(ErrorCode::corrupt_file,
                  in_quotes(entry.name) + " is of unknown dtype " + in_quotes(entry.dtype));
  }

  TensorView tensor{.name = entry.name, .dtype = *dtype, .shape = {}, .bytes = {}};
  for (const uint64_t extent : entry.shape) {
    // What does not fit becomes negative, which checked_byte_count refuses.
    tensor.shape.push_back(static_cast<int64_t>(extent));
  }
  const std::optional<int64_t> size = checked_byte_count(tensor.shape, *dtype);
  if (!size) {
    return refuse(ErrorCode::corrupt_file,
                  in_quotes(entry.name) + " has the impossible shape " + extent_text(entry.shape));
  }
  const uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (begin > end) {
    return refuse(ErrorCode::corrupt_file, in_quotes(entry.name) + " ends before it begins");
  }
  if (end > data.size()) {
    return refuse(ErrorCode::corrupt_file, in_quotes(entry.name) + " ends at byte " +
                                               std::to_string(end) + " of " +
                                               std::to_string(data.size()));
  }
  if (end - begin != static_cast<uint64_t>(*size)) {
    return refuse(ErrorCode::corrupt_file, in_quotes(entry.name) + " has " +
                                               std::to_string(end - begin) + " bytes, but " +
                                               entry.dtype + " " + shape_text(tensor.shape) +
                                               " needs " + std::to_string(*size));
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// Every byte belongs to one tensor: an overlap could change one weight with another, and a hole
// could hide another file in this one.
void check_layout(std::span<const TensorView> tensors, std::span<const std::byte> data,
                  FileProblems& problems) {
  const auto begin = [&](const TensorView* tensor) {
    return static_cast<size_t>(tensor->bytes.data() - data.data());
  };
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) {
    if (!tensor.bytes.empty()) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [&](const TensorView* a, const TensorView* b) { return begin(a) < begin(b); });
  const auto report_hole = [&](size_t from, size_t to) {
    problems.add(ErrorCode::corrupt_file, std::to_string(to - from) + " bytes of data at " +
                                              std::to_string(from) + " belong to no tensor");
  };
  size_t covered = 0;
  const TensorView* last = nullptr;
  for (const TensorView* tensor : order) {
    if (begin(tensor) < covered) {
      problems.add(ErrorCode::corrupt_file,
                   in_quotes(last->name) + " and " + in_quotes(tensor->name) + " overlap");
    }
    if (begin(tensor) > covered) report_hole(covered, begin(tensor));
    const size_t end = begin(tensor) + tensor->bytes.size();
    if (end > covered) covered = end, last = tensor;
  }
  if (covered < data.size()) report_hole(covered, data.size());
}

// The order in which tensors are written: as given, wider types first.
std::vector<const TensorView*> writing_order(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return element_bytes(a->dtype) > element_bytes(b->dtype);
  });
  return order;
}

void check_writable(const std::string& path, std::span<const TensorView> tensors) {
  FileProblems problems(path);
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    if (const std::string problem = name_problem(tensor.name); !problem.empty()) {
      problems.add(ErrorCode::invalid_argument, problem);
      continue;
    }
    if (tensor.name == kMetadataKey) {
      problems.add(ErrorCode::invalid_argument,
                   in_quotes(tensor.name) + " is not a name that a tensor may have");
    }
    if (!names.insert(tensor.name).second)
      problems.add(ErrorCode::invalid_argument, in_quotes(tensor.name) + " is given twice");
    const std::optional<int64_t> size = checked_byte_count(tensor.shape, tensor.dtype);
    if (!size || static_cast<uint64_t>(*size) != tensor.bytes.size()) {
      problems.add(ErrorCode::invalid_argument, in_quotes(tensor.name) + " has " +
                                                    std::to_string(tensor.bytes.size()) +
                                                    " bytes, which " + name(tensor.dtype) + " " +
                                                    shape_text(tensor.shape) + " does not");
    }
  }
  problems.throw_if_any();
}

std::string dump(const nlohmann::ordered_json& json, const std::string& path) {
  try {
    return json.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::invalid_argument, path + ": a name or a metadata text is not UTF-8");
  }
}

// Writes everything but does not commit. The tensors have been checked.
AtomicFile write_uncommitted(const std::string& path, std::span<const TensorView> tensors,
                             const std::map<std::string, std::string>& metadata,
                             Existing existing) {
  nlohmann::ordered_json header;
  nlohmann::ordered_json& texts = header[kMetadataKey] = nlohmann::ordered_json::object();
  texts["format"] = "pt";  // transformers refuses a file without
  for (const auto& [key, value] : metadata) texts[key] = value;

  const std::vector<const TensorView*> order = writing_order(tensors);
  // One entry at a time: an ordered_json finds a key by looking at all of them.
  std::string text = dump(header, path);
  text.pop_back();  // the closing brace
  uint64_t offset = 0;
  for (const TensorView* tensor : order) {
    const nlohmann::ordered_json entry = {
        {"dtype", safetensors_name(tensor->dtype)},
        {"shape", tensor->shape},
        {"data_offsets", {offset, offset + tensor->bytes.size()}},
    };
    text.append(",").append(dump(tensor->name, path)).append(":").append(dump(entry, path));
    offset += tensor->bytes.size();
  }
  text += "}";
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  if (text.size() > kLargestHeader) {
    throw Error(ErrorCode::unsupported,
                path + ": the names and shapes need more than the format's 100 MB",
                "write several shards");
  }

  const auto length = static_cast<uint64_t>(text.size());
  AtomicFile file(path, existing);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const TensorView* tensor : order) file.write(tensor->bytes);
  return file;
}

std::string shard_name(size_t number, size_t count) {
  const auto five_digits = [](size_t n) {
    const std::string text = std::to_string(n);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return "model-" + five_digits(number) + "-of-" + five_digits(count) + ".safetensors";
}

bool is_shard_name(std::string_view name) {
  constexpr std::string_view kPattern = "model-#####-of-#####.safetensors";
  return name.size() == kPattern.size() &&
         std::equal(name.begin(), name.end(), kPattern.begin(), [](char c, char pattern) {
           return pattern == '#' ? c >= '0' && c <= '9' : c == pattern;
         });
}

// Consecutive tensors, each shard as full as it gets.
std::vector<std::span<const TensorView>> cut_into_shards(std::span<const TensorView> tensors,
                                                         uint64_t max_shard_bytes) {
  std::vector<std::span<const TensorView>> shards;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > first &&
        (bytes > max_shard_bytes || tensors[i].bytes.size() > max_shard_bytes - bytes)) {
      shards.push_back(tensors.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += tensors[i].bytes.size();
  }
  shards.push_back(tensors.subspan(first));
  return shards;
}

// Removes the model files of `folder` that are not in `kept`.
void remove_superseded(const std::filesystem::path& folder, const std::set<std::string>& kept) {
  try {
    std::vector<std::filesystem::path> superseded;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string name = file.path().filename();
      const bool is_ours = name == "model.safetensors" || name == "model.safetensors.index.json" ||
                           is_shard_name(name);
      if (is_ours && kept.count(name) == 0) superseded.push_back(file.path());
    }
    for (const auto& file : superseded) std::filesystem::remove(file);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorCode::invalid_argument,
                folder.string() + ": the tensors are written, but older ones cannot be removed: " +
                    error.code().message(),
                "remove the older model files by hand: they would be read instead");
  }
}

}  // namespace

TensorTable read_safetensors(std::span<const std::byte> file, const std::string& where) {
  const auto refuse = [&](const std::string& why, const char* hint) {
    throw Error(ErrorCode::corrupt_file, where + ": " + why, hint);
  };
  if (file.size() < kLengthBytes) refuse("too short for a safetensors file", kTryAgain);
  const auto length = load_little_endian<uint64_t>(file.data());
  const std::span<const std::byte> rest = file.subspan(kLengthBytes);
  if (length > kLargestHeader) {
    refuse("not a safetensors file: its header would be " + std::to_string(length) + " bytes",
           "give a .safetensors file or a pytorch_model.bin");
  }
  if (length > rest.size()) {
    refuse("its header should be " + std::to_string(length) + " bytes, but only " +
               std::to_string(rest.size()) + " are there",
           kTryAgain);
  }
  const std::span<const std::byte> header = rest.first(length), data = rest.subspan(length);
  if (header.empty() || header[0] != std::byte{'{'}) refuse("its header is not a JSON object", "");

  HeaderReader reader;
  const auto* text = reinterpret_cast<const char*>(header.data());
  if (!nlohmann::json::sax_parse(text, text + header.size(), &reader)) refuse(reader.problem, "");

  FileProblems problems(where);
  TensorTable table;
  table.metadata = std::move(reader.metadata);
  table.tensors.reserve(reader.entries.size());
  bool is_cut_short = false;
  for (const HeaderEntry& entry : reader.entries) {
    is_cut_short |= entry.offsets[1] > data.size();
    if (std::optional<TensorView> tensor = check_entry(entry, data, problems))
      table.tensors.push_back(std::move(*tensor));
  }
  // With tensors missing from the list, everything would seem to have holes.
  if (problems.empty()) check_layout(table.tensors, data, problems);
  problems.throw_if_any(is_cut_short ? kTryAgain : "");
  return table;
}

void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_writable(path, tensors);
  write_uncommitted(path, tensors, metadata, Existing::write_through).commit();
}

void write_safetensors_folder(const std::string& folder, std::span<const TensorView> tensors,
                              uint64_t max_shard_bytes,
                              const std::map<std::string, std::string>& metadata) {
  const std::filesystem::path path(folder);
  check_writable(folder, tensors);
  const auto shards = cut_into_shards(tensors, max_shard_bytes);
  std::set<std::string> kept;
  // All are written before the first is renamed, so that a failure leaves the old files.
  std::vector<AtomicFile> files;
  if (shards.size() == 1) {
    kept.insert("model.safetensors");
    files.push_back(
        write_uncommitted(path / "model.safetensors", tensors, metadata, Existing::replace));
  } else {
    uint64_t total = 0;
    nlohmann::json weight_map;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(i + 1, shards.size());
      kept.insert(name);
      files.push_back(write_uncommitted(path / name, shards[i], metadata, Existing::replace));
      for (const TensorView& tensor : shards[i]) {
        weight_map[tensor.name] = name;
        total += tensor.bytes.size();
      }
    }
    const std::string index_name = "model.safetensors.index.json";
    kept.insert(index_name);
    const nlohmann::json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", std::move(weight_map)}};
    files.emplace_back(path / index_name).write(index.dump(2) + "\n");
  }
  for (AtomicFile& file : files) file.commit();
  remove_superseded(path, kept);
}

void copy_safetensors_folder(const std::vector<std::string>& paths, const std::string& from,
                             const std::string& to) {
  const std::filesystem::path source(from), target(to);
  std::set<std::string> kept;
  std::vector<AtomicFile> files;
  const auto copy = [&](const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string name = path.filename();
    kept.insert(name);
    files.emplace_back(target / name).write(file.bytes());
  };
  for (const std::string& path : paths) copy(path);
  const std::string index = "model.safetensors.index.json";
  if (!kept.contains("model.safetensors") && std::filesystem::exists(source / index)) {
    copy(source / index);
  }
  for (AtomicFile& file : files) file.commit();
  remove_superseded(target, kept);
}

}  // namespace heed
