// `heed convert` and `heed quantize`: the same model in another folder, with other weight types.
#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>

#include "base/files/atomic_file.h"
#include "heed/error.h"
#include "heed/model_files.h"
#include "kernels/matmul/weight_types.h"
#include "kernels/rows/convert.h"
#include "model/files/safetensors.h"
#include "model/network.h"
#include "model/quantize.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

// Files that another model may have left in the folder: the tokenizer's, and the generation settings.
constexpr const char* kCompanions[] = {
    "tokenizer.json",      "tokenizer_config.json",  "vocab.txt",  "special_tokens_map.json",
    "vocab.json",          "added_tokens.json",      "merges.txt", "sentencepiece.bpe.model",
    "spiece.model",        "tokenizer.model",        "source.spm", "target.spm",
    "chat_template.jinja", "generation_config.json",
};

// Whether a file belongs to a model and not to its training or to another format of its weights.
bool is_companion(const fs::path& file) {
  constexpr std::string_view kEndings[] = {".json", ".txt", ".model", ".spm", ".jinja", ".md"};
  const std::string name = file.filename(), ending = file.extension();
  if (name == "config.json" || name.ends_with(".index.json")) return false;
  return std::ranges::find(kEndings, ending) != std::end(kEndings) || name.starts_with("LICENSE") ||
         name.starts_with("NOTICE");
}

int64_t tensor_bytes(const std::string& folder) {
  int64_t bytes = 0;
  const TensorFile file = TensorFile::open(folder);
  for (const TensorView& tensor : file.tensors()) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return bytes;
}

[[noreturn]] void cannot_write(const fs::path& path, const std::error_code& why) {
  throw Error(ErrorCode::invalid_argument, path.string() + ": cannot be written: " + why.message(),
              "choose a folder that can be written");
}

void copy_one(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::remove(to, failure);  // a link there may lead to a file of another model
  fs::copy_file(from, to, failure);
  if (failure) cannot_write(to, failure);
}

// Afterwards `to` has the companion files of `from`, and none of a model that was there before.
void copy_companions(const fs::path& from, const fs::path& to) {
  std::error_code none, failure;
  for (const char* name : kCompanions) {
    fs::remove(to / name, failure);
    if (failure) cannot_write(to / name, failure);
  }
  for (const auto& entry : fs::directory_iterator(from, none)) {
    const fs::path name = entry.path().filename();
    if (entry.is_regular_file(none) && is_companion(name)) copy_one(entry.path(), to / name);
    // The modules of sentence-transformers: 1_Pooling/config.json.
    const bool is_module = entry.is_directory(none) && name.string().find('_') == 1 &&
                           std::isdigit(static_cast<unsigned char>(name.string()[0])) != 0;
    if (!is_module || !fs::is_regular_file(entry.path() / "config.json", none)) continue;
    fs::create_directories(to / name, failure);
    if (failure) cannot_write(to / name, failure);
    copy_one(entry.path() / "config.json", to / name / "config.json");
  }
}

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string config_text(const fs::path& folder) {
  const MappedFile file(folder / "config.json");
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

// The type of most numbers in the file.
DType main_dtype(const TensorFile& file) {
  std::map<DType, int64_t> counts;
  for (const TensorView& tensor : file.tensors()) {
    if (is_float(tensor.dtype)) counts[tensor.dtype] += tensor.element_count();
  }
  DType most = DType::f32;
  int64_t count = 0;
  for (const auto& [dtype, elements] : counts) {
    if (elements > count) most = dtype, count = elements;
  }
  return most;
}

bool has_only(const TensorFile& file, DType dtype) {
  return std::ranges::all_of(file.tensors(), [&](const TensorView& tensor) {
    return !is_float(tensor.dtype) || tensor.dtype == dtype;
  });
}

std::optional<DType> requested_dtype(const std::string& type) {
  if (type.empty()) return std::nullopt;
  if (type == "f32") return DType::f32;
  if (type == "f16") return DType::f16;
  if (type == "bf16") return DType::bf16;
  throw Error(ErrorCode::invalid_argument, "the type must be f32, f16 or bf16, got '" + type + "'",
              "without a type the weights keep theirs");
}

// All tensors, also those that the model does not need, in the order of the file.
void write_converted(const TensorFile& file, DType dtype, const std::string& to) {
  std::deque<std::vector<std::byte>> owned;
  std::vector<TensorView> views;
  std::vector<float> floats;
  for (const TensorView& tensor : file.tensors()) {
    TensorView& view = views.emplace_back(tensor);
    if (!is_float(tensor.dtype) || tensor.dtype == dtype) continue;
    const auto count = static_cast<size_t>(tensor.element_count());
    floats.resize(count);
    copy_as_f32(tensor, floats.data());
    std::vector<std::byte>& bytes = owned.emplace_back(count * element_bytes(dtype));
    if (dtype == DType::f32) {
      std::ranges::copy(std::as_bytes(std::span(floats)), bytes.begin());
    } else {
      const auto convert = dtype == DType::f16 ? kernels::f32_to_f16 : kernels::f32_to_bf16;
      convert(floats.data(), reinterpret_cast<uint16_t*>(bytes.data()),
              static_cast<int64_t>(count));
    }
    view.dtype = dtype, view.bytes = bytes;
  }
  write_safetensors_folder(to, views, NetworkSaveOptions{}.max_shard_bytes, file.metadata());
}

}  // namespace

// Converting in place would overwrite the only f32 weights.
void check_another_folder(const std::string& from, const std::string& to) {
  std::error_code none;
  if (!std::filesystem::equivalent(from, to, none)) return;
  throw Error(ErrorCode::invalid_argument,
              to + ": the output folder must differ from the model's folder",
              "write to another folder; converting in place would lose the weights");
}

ConvertReport convert_model(const std::string& from, const std::string& to,
                            const ConvertOptions& options) {
  const std::optional<DType> dtype = requested_dtype(options.type);
  check_another_folder(from, to);
  // Checks the whole model before anything is written.
  const Network network = Network::load(from, {.form = WeightForm::stored});
  const TensorFile file = TensorFile::open(from);
  const std::string config = config_text(from), quantization = network.hugging_face().quantization;
  const DType found = main_dtype(file);
  const bool is_safetensors = std::ranges::all_of(
      file.paths(), [](const std::string& path) { return path.ends_with(".safetensors"); });
  const bool keeps = !dtype || (quantization.empty() && has_only(file, *dtype));
  ConvertReport report{
      .type = quantization.empty() || dtype ? name(dtype.value_or(found)) : quantization,
      .copied = keeps && is_safetensors};
  std::error_code failure;
  fs::create_directories(to, failure);
  if (failure) cannot_write(to, failure);
  if (report.copied) {
    copy_safetensors_folder(file.paths(), from, to);
  } else if (is_safetensors && quantization.empty()) {
    write_converted(file, *dtype, to);
  } else {
    // Quantized tensors become floats; a pytorch_model.bin may hold one tensor under several names.
    const DType written = dtype.value_or(found == DType::f64 ? DType::f32 : found);
    Network::load(from, {.form = WeightForm::floats}).save(to, {.dtype = written});
    report.type = name(written);
  }
  const bool same_config = keeps && (is_safetensors || found != DType::f64);
  write_text(fs::path(to) / "config.json",
             same_config ? config : hf_edit_config(config, dtype.value_or(DType::f32), ""));
  copy_companions(from, to);
  return report;
}

QuantizeReport quantize_model(const std::string& from, const std::string& to,
                              const QuantizeOptions& options) {
  const WeightType type = weight_type_from_name(options.type);
  check_another_folder(from, to);
  const NameFilter keep_wide(options.keep_wide);
  ThreadPool pool(options.threads);
  Quantized quantized = quantize(Network::load(from), {type, keep_wide, pool});
  const DType other = dtype_from_name(kernels::weight_type(type).other_dtype);
  quantized.network.save(to, {.dtype = other});
  write_text(
      fs::path(to) / "config.json",
      hf_edit_config(config_text(from), other, quantized.network.hugging_face().quantization));
  copy_companions(from, to);
  QuantizeReport report{.parameters = parameter_count(quantized.network.config()),
                        .bytes_before = tensor_bytes(from),
                        .bytes_after = tensor_bytes(to),
                        .layers = std::move(quantized.layers)};
  return report;
}

}  // namespace heed
