// `heed convert` and `heed quantize`: the same model in another folder, with other weight types.
#include <filesystem>

#include "heed/error.h"
#include "heed/model_files.h"
#include "kernels/matmul/weight_types.h"
#include "model/network.h"
#include "model/quantize.h"

namespace heed {
namespace {

// Files of a model folder that are copied unchanged: the tokenizer's, and the generation settings.
constexpr const char* kCompanions[] = {
    "tokenizer.json",      "tokenizer_config.json",  "vocab.txt",  "special_tokens_map.json",
    "vocab.json",          "added_tokens.json",      "merges.txt", "sentencepiece.bpe.model",
    "spiece.model",        "tokenizer.model",        "source.spm", "target.spm",
    "chat_template.jinja", "generation_config.json",
};

int64_t tensor_bytes(const std::string& folder) {
  int64_t bytes = 0;
  const TensorFile file = TensorFile::open(folder);
  for (const TensorView& tensor : file.tensors()) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return bytes;
}

// Afterwards `to` has the companion files of `from`, and none of a model that was there before.
void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name : kCompanions) {
    std::error_code none, failure;
    if (std::filesystem::is_regular_file(from / name, none)) {
      std::filesystem::copy_file(from / name, to / name,
                                 std::filesystem::copy_options::overwrite_existing, failure);
    } else {
      std::filesystem::remove(to / name, failure);
    }
    if (failure) {
      throw Error(ErrorCode::invalid_argument,
                  (to / name).string() + ": cannot be written: " + failure.message(),
                  "choose a folder that can be written");
    }
  }
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

void convert_model(const std::string& from, const std::string& to, const ConvertOptions& options) {
  NetworkSaveOptions save;
  if (options.type == "f32") {
    save.dtype = DType::f32;
  } else if (options.type == "f16") {
    save.dtype = DType::f16;
  } else if (options.type == "bf16") {
    save.dtype = DType::bf16;
  } else {
    throw Error(ErrorCode::invalid_argument,
                "the type must be f32, f16 or bf16, got '" + options.type + "'");
  }
  check_another_folder(from, to);
  Network::load(from, {.form = WeightForm::floats}).save(to, save);
  copy_companions(from, to);
}

QuantizeReport quantize_model(const std::string& from, const std::string& to,
                              const QuantizeOptions& options) {
  const WeightType type = weight_type_from_name(options.type);
  check_another_folder(from, to);
  const NameFilter keep_wide(options.keep_wide);
  ThreadPool pool(options.threads);
  Quantized quantized = quantize(Network::load(from), {type, keep_wide, pool});
  quantized.network.save(to, {.dtype = dtype_from_name(kernels::weight_type(type).other_dtype)});
  copy_companions(from, to);
  QuantizeReport report{.parameters = parameter_count(quantized.network.config()),
                        .bytes_before = tensor_bytes(from),
                        .bytes_after = tensor_bytes(to),
                        .layers = std::move(quantized.layers)};
  return report;
}

}  // namespace heed
