#include "train/run/resume.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

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

// Without those that the tokenizer, the data, --memory or mpirun decide after the recipe is read.
std::vector<TrainSetting> comparable_settings(const Recipe& recipe) {
  static const std::vector<std::string> kFitted{"vocabulary",
                                                "target_vocabulary",
                                                "pad_id",
                                                "bos_id",
                                                "eos_id",
                                                "decoder_start_id",
                                                "head",
                                                "labels",
                                                "pooler",
                                                "pooling",
                                                "head_activation",
                                                "position_offset"};
  static const std::vector<std::string> kPlanned{"data.batch_tokens", "data.batch_sentences",
                                                 "train.accumulate", "train.recompute",
                                                 "validate.batches"};
  const bool is_planned = std::filesystem::exists(recipe.train.out + "/memory.json");
  std::vector<TrainSetting> list = resolved_settings(recipe);
  std::erase_if(list, [&](const TrainSetting& s) {
    const std::string key = s.section + "." + s.key;
    if (key == "train.out") return true;
    if (key == "train.steps") return recipe.train.steps == 0;  // counted from train.epochs
    if (std::ranges::find(kPlanned, key) != kPlanned.end()) {
      return is_planned || recipe.origin(key) == "mpirun";
    }
    return s.section == "model" && !overrides_model(recipe, s.key) &&
           std::ranges::find(kFitted, s.key) != kFitted.end();
  });
  return list;
}

}  // namespace

std::vector<std::string> changed_settings(const std::string& saved,
                                          const std::vector<TrainSetting>& now) {
  std::vector<std::string> changes;
  const Json before = Json::parse(saved, nullptr, /*allow_exceptions=*/false);
  if (!before.is_object()) return changes;
  const std::map<std::string, std::string> defaults = default_settings();
  for (const TrainSetting& s : now) {
    const std::string key = s.section + "." + s.key;
    const auto found = before.find(key);
    // A key that the checkpoint does not have yet had its default.
    const auto by_default = s.section == "model" ? defaults.end() : defaults.find(key);
    std::string was = by_default == defaults.end() ? s.value : by_default->second;
    if (found != before.end()) was = found->is_string() ? found->get<std::string>() : s.value;
    // Values that the tokenizer and the data decide do not count: older checkpoints have the
    // preset's.
    if (was == s.value || s.origin == kFittedOrigin) continue;
    changes.push_back(key + " was " + was + ", is now " + s.value);
  }
  return changes;
}

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
  if (!result.finished) return std::nullopt;
  result.changed_settings = changed_settings(state.settings, comparable_settings(recipe));
  return result;
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
