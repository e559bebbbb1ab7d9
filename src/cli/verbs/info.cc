// heed info: architecture, size and memory of a model.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/table.h"
#include "heed/error.h"
#include "heed/model_files.h"

namespace heed::cli {
namespace {

struct InfoFlags : CommonFlags {
  std::string model, preset;
};

std::string to_text(const ModelInfo& info) {
  std::string text =
      "model type        " + info.model_type + "\n" + "parameters        " +
      std::to_string(info.parameters) + " (" + count_text(static_cast<double>(info.parameters)) +
      ")\n" + "weights           " + bytes_text(info.weight_bytes) + " as " + info.weight_type +
      "\n" + "to train them     " + bytes_text(info.training_bytes) + " with Adam, " +
      bytes_text(info.training_bytes + info.weight_bytes) +
      " where gradients are kept (clipping, several batches a step)\n" + "FLOPs a token     " +
      count_text(info.flops_per_token) + " forward\n\n";
  Table memory({{"sequences", Align::right},
                {"length", Align::right},
                {"inference", Align::right},
                {"training", Align::right}});
  for (const ShapeMemory& shape : info.memory) {
    memory.add_row({std::to_string(shape.sequences), std::to_string(shape.length),
                    bytes_text(shape.inference_bytes), bytes_text(shape.training_bytes)});
  }
  Table settings({{"setting"}, {"value"}, {"meaning"}});
  for (const Setting& setting : info.settings) {
    settings.add_row({setting.name, setting.value, setting.help});
  }
  return text + "working memory of a batch, beside the weights\n" + memory.text() + "\n" +
         settings.text();
}

std::string to_json(const ModelInfo& info) {
  using Json = nlohmann::ordered_json;
  Json memory = Json::array(), config = Json::object();
  for (const ShapeMemory& shape : info.memory) {
    memory.push_back({{"sequences", shape.sequences},
                      {"length", shape.length},
                      {"inference_bytes", shape.inference_bytes},
                      {"training_bytes", shape.training_bytes}});
  }
  for (const Setting& setting : info.settings) config[setting.name] = Json::parse(setting.value);
  const Json document = {
      {"model_type", info.model_type},         {"parameters", info.parameters},
      {"weight_bytes", info.weight_bytes},     {"weight_type", info.weight_type},
      {"training_bytes", info.training_bytes}, {"flops_per_token", info.flops_per_token},
      {"memory", std::move(memory)},           {"config", std::move(config)}};
  return document.dump(2) + "\n";
}

void run_info(const InfoFlags& flags, Output& out) {
  if (flags.model.empty() == flags.preset.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed info: either --model or --preset must be given",
                "heed info --preset transformer-base");
  }
  const ModelInfo info = flags.preset.empty() ? model_info(flags.model) : preset_info(flags.preset);
  out.write(flags.json ? to_json(info) : to_text(info));
}

}  // namespace

void add_info(Program& program) {
  const Command info = program.add_verb("info", "Show architecture, size and memory of a model");
  const auto flags = std::make_shared<InfoFlags>();
  add_text(info, "--model", flags->model, "DIR", "model folder");
  add_text(info, "--preset", flags->preset, "NAME", "or a preset (see heed presets)");
  add_common_flags(info, *flags);
  info.on_run([flags](Output& out) { run_info(*flags, out); });
}

}  // namespace heed::cli
