#include "train/sweep/sweep_folders.h"

#define XXH_INLINE_ALL  // one function of it: nothing to link
#include <xxhash.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "model/hugging_face/json_values.h"
#include "train/recipe/recipe.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

// In a row's folder: its settings, from its beginning on, and its result.
constexpr const char *kSettingsFile = "/settings.json", *kResultFile = "/result.json";
constexpr const char* kSteps = "train.steps";

}  // namespace

std::vector<std::string> sets_of(const SweepPlan& plan, const SweepRow& row) {
  std::vector<std::string> sets = plan.set;
  for (const auto& [key, value] : row.changes) sets.push_back(key + "=" + value);
  return sets;
}

std::string folder_of(const SweepPlan& plan, const SweepRow& row) {
  return plan.out + "/" + row.folder;
}

TrainOptions train_options(const SweepPlan& plan, const SweepRow& row) {
  TrainOptions options;
  options.recipe = plan.recipe;
  options.set = sets_of(plan, row);
  options.out = folder_of(plan, row);
  return options;
}

namespace {

// All settings of a row but its folder.
Json settings_of(const SweepPlan& plan, const SweepRow& row) {
  Json json = Json::object();
  for (const TrainSetting& s : train_settings(train_options(plan, row))) {
    if (s.section != "train" || s.key != "out") json[s.section + "." + s.key] = s.value;
  }
  return json;
}

Json result_json(const TrainResult& r) {
  return {{"steps", r.steps},
          {"seconds", r.seconds},
          {"tokens", r.tokens},
          {"loss", r.loss},
          {"parameters", r.parameters},
          {"validation", r.validation},
          {"peak_rss_bytes", r.peak_rss_bytes}};
}

// Null if there is none, or it is not a JSON object.
Json read_json(const std::string& path) {
  if (!fs::exists(path)) return {};
  const MappedFile file(path);
  return parse_object({reinterpret_cast<const char*>(file.bytes().data()), file.size()});
}

// The settings with which a folder was begun; null if unknown.
Json settings_in(const std::string& folder) {
  Json settings = read_json(folder + kSettingsFile);
  if (settings.is_object()) return settings;
  const Json result = read_json(folder + kResultFile);
  return result.is_object() ? result.value("settings", Json()) : Json();
}

int64_t steps_in(const Json& settings) {
  const auto found = settings.find(kSteps);
  if (found == settings.end() || !found->is_string()) return 0;
  const std::string text = found->get<std::string>();
  int64_t steps = 0;
  std::from_chars(text.data(), text.data() + text.size(), steps);
  return steps;
}

// Whether all settings but the steps are equal. A key that did not exist yet had its default.
bool same_but_steps(const Json& before, const Json& now) {
  for (const auto& [key, value] : before.items()) {
    if (key != kSteps && now.value(key, Json()) != value) return false;
  }
  const std::map<std::string, std::string> defaults = default_settings();
  for (const auto& [key, value] : now.items()) {
    if (key == kSteps || before.contains(key)) continue;
    const auto found = defaults.find(key);
    if (found == defaults.end() || value != found->second) return false;
  }
  return true;
}

// Whether a training with settings `before` can be resumed with `now`.
bool can_resume(const Json& before, const Json& now) {
  if (!before.is_object()) return true;
  return same_but_steps(before, now) && steps_in(before) <= steps_in(now);
}

// A short name for settings. Folders of earlier versions have other hashes, and are still found:
// changed_folder() looks at the settings inside.
std::string short_hash(const std::string& text) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", XXH32(text.data(), text.size(), 0));
  return digits;
}

// Whether a folder's name is `row` and a hash.
bool is_hashed(const std::string& name, const std::string& row) {
  constexpr size_t kDigits = 8;
  return name.size() == row.size() + 1 + kDigits && name.starts_with(row + "-") &&
         name.find_first_not_of("0123456789abcdef", row.size() + 1) == std::string::npos;
}

// The folder of a row whose plain folder has another training: one that can be resumed, whatever its
// hash, the one with the most steps if there are several; otherwise a new one.
std::string changed_folder(const SweepPlan& plan, const SweepRow& row, const Json& now,
                           const std::set<std::string>& taken) {
  std::string best;
  int64_t best_steps = -1;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(plan.out, missing)) {
    const std::string name = entry.path().filename();
    if (!is_hashed(name, row.folder) || taken.contains(name)) continue;
    const Json before = settings_in(entry.path());
    if (!before.is_object() || !can_resume(before, now) || steps_in(before) <= best_steps) continue;
    best = name, best_steps = steps_in(before);
  }
  if (!best.empty()) return best;
  Json without_steps = now;
  without_steps.erase(kSteps);
  std::string folder = row.folder + "-" + short_hash(without_steps.dump());
  // Unless that one has more steps already.
  if (can_resume(settings_in(plan.out + "/" + folder), now)) return folder;
  return row.folder + "-" + short_hash(now.dump());
}

}  // namespace

void write_whole(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void choose_folders(SweepPlan& plan) {
  std::set<std::string> taken;
  for (const SweepRow& row : plan.rows) taken.insert(row.folder);
  for (SweepRow& row : plan.rows) {
    const Json now = settings_of(plan, row);
    if (can_resume(settings_in(folder_of(plan, row)), now)) continue;
    row.folder = changed_folder(plan, row, now, taken);
  }
}

void write_settings(const SweepPlan& plan, const SweepRow& row) {
  write_whole(folder_of(plan, row) + kSettingsFile, settings_of(plan, row).dump(2) + "\n");
}

void write_result(const SweepPlan& plan, const SweepRow& row, const TrainResult& result) {
  const Json json{
      {"name", row.name}, {"settings", settings_of(plan, row)}, {"result", result_json(result)}};
  write_whole(folder_of(plan, row) + kResultFile, json.dump(2) + "\n");
}

std::optional<TrainResult> finished_result(const SweepPlan& plan, const SweepRow& row) {
  const Json json = read_json(folder_of(plan, row) + kResultFile);
  const Json before = json.is_object() ? json.value("settings", Json()) : Json();
  const Json now = settings_of(plan, row);
  if (!before.is_object() || !same_but_steps(before, now) || steps_in(before) != steps_in(now)) {
    return std::nullopt;
  }
  try {
    const Json& r = json.at("result");
    TrainResult result;
    result.folder = folder_of(plan, row);
    result.finished = true;
    result.steps = whole_at(r, "steps");
    result.seconds = r.at("seconds").get<double>();
    result.tokens = whole_at(r, "tokens");
    result.loss = r.at("loss").get<double>();
    result.parameters = whole_at(r, "parameters");
    result.validation = r.at("validation").get<std::map<std::string, double>>();
    result.peak_rss_bytes = whole_at(r, "peak_rss_bytes");
    return result;
  } catch (const Json::exception&) {
    return std::nullopt;  // of another version
  }
}

}  // namespace heed
