#include "heed/model_files.h"

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "heed/error.h"
#include "model/network.h"
#include "model/packed_batch.h"
#include "model/presets.h"
#include "model/quantize.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

// Forward, and with a tape backward, of `sequences` × `length` ids: as much work as a step does.
void run_step(Ctx& ctx, const ModelConfig& config, const Transformer& transformer,
              const PackedBatch& packed, const std::function<void()>& after_each = {}) {
  const Batch batch = packed.batch();
  const Var hidden = transformer.hidden(ctx, {.source = batch, .target = batch});
  if (config.head == Head::language_model || config.head == Head::masked_lm) {
    transformer.token_loss(ctx, hidden, packed.tokens, {});
  }
  if (ctx.tape) ctx.tape->backward(ctx, after_each);
}

int64_t inference_bytes(const ModelConfig& config, const Transformer& transformer,
                        const PackedBatch& packed) {
  ThreadPool pool;
  Arena plan = Arena::measuring();
  Ctx ctx{pool, plan, nullptr};
  run_step(ctx, config, transformer, packed);
  return static_cast<int64_t>(plan.peak_bytes());
}

// Activations, and the gradients that a step holds until its weights are updated.
int64_t training_bytes(const ModelConfig& config, const Transformer& transformer,
                       const PackedBatch& packed, Parameters& parameters) {
  ThreadPool pool;
  Tape tape;
  const auto measure = [&](const std::function<void()>& after_each) {
    for (WeightGradient& slot : parameters.gradients()) slot.arrived = 0;
    parameters.lender()->measure();
    Arena plan = Arena::measuring();
    Ctx ctx{pool, plan, &tape};
    run_step(ctx, config, transformer, packed, after_each);
    parameters.abandon_gradients();
    return plan.peak_bytes();
  };
  const size_t activations = measure({});
  parameters.plan_gradients();
  measure([&] { parameters.use_final_gradients({}); });
  return static_cast<int64_t>(activations + parameters.lender()->bytes());
}

std::vector<ShapeMemory> memory_by_shape(const ModelConfig& config) {
  // No numbers are touched while measuring, so a model of any size can be asked about.
  Parameters shapes = Parameters::shapes_only(config);
  shapes.add_gradients(GradientMemory::lent);
  const Transformer transformer(config, shapes);
  std::vector<ShapeMemory> list;
  for (const auto& [sequences, length] :
       {std::pair<int64_t, int64_t>{1, 32}, {1, 512}, {32, 32}, {32, 128}}) {
    if (length > config.max_positions) continue;
    const std::vector<std::vector<int32_t>> ids(
        static_cast<size_t>(sequences), std::vector<int32_t>(static_cast<size_t>(length), 0));
    const PackedBatch packed(ids);
    list.push_back({sequences, length, inference_bytes(config, transformer, packed),
                    training_bytes(config, transformer, packed, shapes)});
  }
  return list;
}

// Two operations for every weight that multiplies a token's row: all matrices but the tables that
// are only looked up.
double flops_per_token(const ModelConfig& config) {
  double weights = 0;
  for (const ParameterSpec& spec : declare(config)) {
    const bool table = spec.name.starts_with("embedding.") || spec.name.starts_with("target.") ||
                       spec.name.ends_with("t5_bias");
    if (spec.rows > 1 && !table) weights += static_cast<double>(spec.size());
  }
  const bool tied = config.tying == Tying::all || config.tying == Tying::target_output;
  const bool vocabulary = config.head == Head::language_model || config.head == Head::masked_lm;
  if (tied && vocabulary) {
    weights += static_cast<double>(config.output_vocabulary()) * static_cast<double>(config.width);
  }
  return 2 * weights;
}

ModelInfo info_of(const ModelConfig& config, const std::string& model_type) {
  ModelInfo info;
  info.model_type = model_type;
  info.parameters = parameter_count(config);
  info.weight_bytes = info.parameters * static_cast<int64_t>(sizeof(float));
  info.weight_type = weight_type_name(WeightType::f32);
  info.training_bytes = 3 * info.weight_bytes;
  info.flops_per_token = flops_per_token(config);
  info.memory = memory_by_shape(config);
  const Json values = Json::parse(to_json(config));
  describe(config, [&](const char* name, const auto&, const char* help) {
    info.settings.push_back({name, values.at(name).dump(), help});
  });
  for (const ParameterSpec& spec : declare(config)) {
    info.weights.push_back({spec.name, spec.rows, spec.cols});
  }
  return info;
}

}  // namespace

std::vector<PresetInfo> list_presets() {
  std::vector<PresetInfo> list;
  for (const Preset& p : presets()) {
    list.push_back({p.name, p.about, parameter_count(preset(p.name))});
  }
  return list;
}

ModelInfo preset_info(const std::string& name) {
  const ModelConfig config = preset(name);
  return info_of(config, hf_equivalent(config).model_type);
}

ModelInfo model_info(const std::string& folder) {
  return model_info(Network::load(folder, {.form = WeightForm::stored}));
}

ModelInfo model_info(const Network& network) {
  ModelInfo info = info_of(network.config(), network.hugging_face().model_type);
  info.weight_bytes = network.parameters().bytes();
  info.weight_type = weight_type_name(main_type(network.parameters()));
  return info;
}

namespace {

// What of a model folder is neither its config nor its weights, and goes along unchanged: the
// tokenizer's files, and how to generate.
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

// Afterwards `to` has those of `from`, and none of a model that was there before. (Its weights were
// replaced already.)
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

// In place, f16 would replace the only f32 there is.
void check_another_folder(const std::string& from, const std::string& to) {
  std::error_code none;
  if (!std::filesystem::equivalent(from, to, none)) return;
  throw Error(ErrorCode::invalid_argument, to + ": the model's own folder",
              "write to another folder, so that nothing is lost");
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
    throw Error(ErrorCode::invalid_argument, "the type is '" + options.type + "'",
                "use f32, f16 or bf16");
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
