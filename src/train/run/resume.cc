#include "train/run/resume.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/report/training_log.h"
#include "train/run/checkpoint.h"

namespace heed {
namespace {

std::vector<Checkpoint> checkpoints_of(const std::string& out) {
  return Checkpoints(out + "/checkpoints").list();
}

bool asks_for_more(const Recipe& recipe, const TrainingState& state) {
  const int patience = recipe.validate.patience;
  if (patience > 0 && state.without_better >= patience) return false;
  if (recipe.train.steps > 0) return state.step < recipe.train.steps;
  // The steps of an epoch are unknown before the data is read, so requested epochs are compared.
  const Json settings = Json::parse(state.settings, nullptr, /*allow_exceptions=*/false);
  const std::string before =
      settings.is_object() ? settings.value("train.epochs", std::string()) : std::string();
  double epochs = 0;
  std::from_chars(before.data(), before.data() + before.size(), epochs);
  return recipe.train.epochs > std::max(epochs, static_cast<double>(state.cursor.epoch));
}

}  // namespace

void refuse_foreign_model(const std::string& out) {
  namespace fs = std::filesystem;
  // These are written by training only. A log is not enough: it may be distributed with a model.
  if (fs::exists(out + "/checkpoints") || fs::exists(out + "/report.html")) return;
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json",
                           "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!fs::exists(out + "/" + name)) continue;
    throw Error(ErrorCode::invalid_argument,
                out + ": must not hold a model that was not trained there, found " + name,
                "choose another --out: this one would be overwritten");
  }
}

std::optional<TrainResult> finished_result(const Recipe& recipe) {
  const std::string& out = recipe.train.out;
  const std::vector<Checkpoint> saved = checkpoints_of(out);
  if (saved.empty() || !std::filesystem::exists(out + "/model.safetensors")) return std::nullopt;
  const TrainingState& state = saved.back().state;
  if (asks_for_more(recipe, state)) return std::nullopt;
  TrainResult result;
  result.folder = out;
  result.steps = state.step;
  result.seconds = state.seconds;
  result.tokens = state.tokens;
  result.best_metric = state.best_metric;
  result.best_step = state.best_step;
  for (const LogRecord& record : read_history(out, state.step)) {
    if (const auto parameters = record.value("parameters")) {
      result.parameters = static_cast<int64_t>(*parameters);
    }
    if (record.kind == "train") result.loss = record.value("loss").value_or(0);
    if (record.kind != "end" || record.step != state.step) continue;
    result.finished = result.was_finished = true;
    result.validation = {record.values.begin(), record.values.end()};
    result.validation.erase("peak_rss_bytes");
    result.peak_rss_bytes = static_cast<int64_t>(record.value("peak_rss_bytes").value_or(0));
  }
  return result.finished ? std::optional(result) : std::nullopt;
}

std::optional<uint64_t> checkpoint_seed(const std::string& out) {
  const std::vector<Checkpoint> saved = checkpoints_of(out);
  return saved.empty() ? std::nullopt : std::optional(saved.back().state.seed);
}

int64_t checkpoint_steps(const std::string& out) {
  const std::vector<Checkpoint> saved = checkpoints_of(out);
  return saved.empty() ? 0 : saved.back().state.step;
}

}  // namespace heed
