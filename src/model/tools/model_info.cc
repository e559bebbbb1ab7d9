// `heed presets` and `heed info`: sizes, working memory and settings of a model.
#include "heed/model_files.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "heed/error.h"
#include "model/gradient_step.h"
#include "model/network.h"
#include "model/packed_batch.h"
#include "model/presets.h"
#include "model/quantize.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

// Forward, and with a tape backward, of one batch.
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
  const GradientPlan plan = plan_gradients(parameters, pool, tape,
                                           [&](Ctx& ctx, const std::function<void()>& after_each) {
                                             run_step(ctx, config, transformer, packed, after_each);
                                           });
  return static_cast<int64_t>(plan.bytes());
}

std::vector<ShapeMemory> memory_by_shape(const ModelConfig& config) {
  // Measuring touches no values, so the model may have any size.
  Parameters shapes = Parameters::shapes_only(config);
  shapes.add_gradients(GradientMemory::pooled);
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

// Two operations for every weight of a matmul: all matrices except the embedding tables.
double flops_per_token(const ModelConfig& config) {
  double weights = 0;
  for (const ParameterSpec& spec : declare(config)) {
    const bool table = spec.name.starts_with("embedding.") || spec.name.starts_with("target.") ||
                       spec.is_relative_bias();
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

}  // namespace heed
