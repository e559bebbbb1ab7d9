#include "heed/sweep.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/recipe/preparation.h"
#include "train/recipe/recipe.h"
#include "train/sweep/sweep_text.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

using Change = std::pair<std::string, std::string>;  // "model.heads", "8"

// In a row's folder: what it is trained by, from its beginning on, and what came of it.
constexpr const char *kSettingsFile = "/settings.json", *kResultFile = "/result.json";
constexpr const char* kSteps = "train.steps";
// Each is a training; a grid of a few long lists would never come to its end.
constexpr size_t kMostRows = 1000;

[[noreturn]] void wrong(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, where + ": " + what,
              "a sweep has recipe = \"FILE\", [set], and any of [[rows]], [[lists]] and [[grid]]");
}

// As short as it can be: 0.1, and not the 17 digits of the nearest double.
std::string number_text(double value) {
  char text[32];
  const char* const begin = text;
  const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  const std::string number(begin, end);
  const bool is_whole = number.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole ? number + ".0" : number;
}

// A value as TOML writes it, which is what --set takes.
std::string value_text(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return number_text(number->get());
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

struct Variation {
  std::string key;
  const toml::node* value;
};

// The section.key entries of a table, in the file's order, without its own `name`.
std::vector<Variation> variations(const toml::table& table, const std::string& where) {
  std::vector<Variation> list;
  for (const auto& [section, node] : table) {
    if (section.str() == "name") continue;
    const toml::table* keys = node.as_table();
    if (!keys) wrong(where, std::string(section.str()) + " is not a section.key of a recipe");
    for (const auto& [key, value] : *keys) {
      list.push_back({std::string(section.str()) + "." + std::string(key.str()), &value});
    }
  }
  std::ranges::stable_sort(list, {}, [](const Variation& v) {
    const toml::source_position at = v.value->source().begin;
    return std::pair(at.line, at.column);
  });
  return list;
}

std::string given_name(const toml::table& table) {
  const toml::node* node = table.get("name");
  return node && node->is_string() ? node->as_string()->get() : std::string();
}

// What a row is called that has no name of its own: what it changes.
std::string row_name(const std::string& prefix, const std::vector<Change>& changes) {
  std::string text = prefix;
  for (const auto& [key, value] : changes) {
    const std::string last = key.substr(key.find('.') + 1);
    text += (text.empty() ? "" : " ") + last + "=" + cell_text(value);
  }
  return text.empty() ? "base" : text;
}

std::string folder_name(const std::string& name) {
  std::string folder;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view(".=+").find(c) != std::string_view::npos;
    if (plain) {
      folder += c;
    } else if (!folder.empty() && folder.back() != '-') {
      folder += '-';
    }
  }
  while (!folder.empty() && folder.back() == '-') folder.pop_back();
  while (!folder.empty() && folder.front() == '.') folder.erase(0, 1);
  return folder.empty() ? "row" : folder;
}

const toml::array& list_of(const Variation& v, const std::string& where) {
  const toml::array* list = v.value->as_array();
  if (!list || list->empty()) wrong(where, v.key + " must be a list of values");
  return *list;
}

class SweepReader {
 public:
  SweepReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  SweepPlan read() {
    check_keys();
    plan_.recipe = text("recipe");
    if (plan_.recipe.empty()) wrong(where_, "recipe = \"FILE\" is missing");
    plan_.out = text("out");
    read_columns();
    if (const toml::node* set = table_.get("set")) {
      if (!set->is_table()) wrong(where_, "set must be a table");
      for (const Variation& v : variations(*set->as_table(), where_ + ": [set]")) {
        plan_.set.push_back(v.key + "=" + value_text(*v.value));
      }
    }
    // In the order of the file, whatever their kind.
    std::vector<std::pair<uint32_t, std::function<void()>>> parts;
    each_table("rows", parts, [this](const toml::table& t) { add_row(t); });
    each_table("lists", parts, [this](const toml::table& t) { add_lists(t); });
    each_table("grid", parts, [this](const toml::table& t) { add_grid(t); });
    std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.first; });
    for (const auto& [line, add] : parts) add();
    if (plan_.rows.empty()) wrong(where_, "there are no rows");
    return std::move(plan_);
  }

 private:
  void check_keys() const {
    const std::vector<std::string> known{"recipe", "out",   "columns", "set",
                                         "rows",   "lists", "grid"};
    for (const auto& [key, node] : table_) {
      const std::string found(key.str());
      if (std::ranges::find(known, found) != known.end()) continue;
      const auto near = nearest(found, known);
      wrong(where_ + ":" + std::to_string(node.source().begin.line),
            "unknown key " + found + (near ? " (did you mean " + *near + "?)" : ""));
    }
  }

  std::string text(const char* key) const {
    const toml::node* node = table_.get(key);
    if (!node) return {};
    if (!node->is_string()) wrong(where_, std::string(key) + " must be a text in quotes");
    return node->as_string()->get();
  }

  void read_columns() {
    const toml::node* node = table_.get("columns");
    if (!node) return;
    if (!node->is_array()) wrong(where_, "columns must be a list of metrics");
    for (const toml::node& column : *node->as_array()) {
      if (!column.is_string()) wrong(where_, "columns must be a list of metrics");
      plan_.columns.push_back(column.as_string()->get());
    }
  }

  template <class Add>
  void each_table(const char* key, std::vector<std::pair<uint32_t, std::function<void()>>>& parts,
                  const Add& add) const {
    const toml::node* node = table_.get(key);
    if (!node) return;
    const toml::array* tables = node->as_array();
    if (!tables) wrong(where_, std::string(key) + " must be [[" + key + "]] tables");
    for (const toml::node& element : *tables) {
      const toml::table* table = element.as_table();
      if (!table) wrong(where_, std::string(key) + " must be [[" + key + "]] tables");
      parts.emplace_back(element.source().begin.line, [add, table] { add(*table); });
    }
  }

  std::string place(const toml::table& table) const {
    return where_ + ":" + std::to_string(table.source().begin.line);
  }

  void add(const std::string& name, std::vector<Change> changes, const toml::table& table) {
    if (plan_.rows.size() == kMostRows) {
      wrong(place(table), "more than " + std::to_string(kMostRows) + " rows");
    }
    for (const SweepRow& row : plan_.rows) {
      if (row.name == name || row.folder == folder_name(name)) {
        wrong(place(table), "a second row '" + name + "'");
      }
    }
    plan_.rows.push_back({name, folder_name(name), std::move(changes)});
  }

  void add_row(const toml::table& table) {
    std::vector<Change> changes;
    for (const Variation& v : variations(table, place(table))) {
      changes.emplace_back(v.key, value_text(*v.value));
    }
    const std::string name = given_name(table);
    add(name.empty() ? row_name("", changes) : name, changes, table);
  }

  void add_lists(const toml::table& table) {
    const std::vector<Variation> keys = variations(table, place(table));
    if (keys.empty()) wrong(place(table), "[[lists]] has no lists");
    const size_t count = list_of(keys.front(), place(table)).size();
    for (size_t i = 0; i < count; ++i) {
      std::vector<Change> changes;
      for (const Variation& v : keys) {
        const toml::array& list = list_of(v, place(table));
        if (list.size() != count) {
          wrong(place(table), v.key + " has " + std::to_string(list.size()) + " values, " +
                                  keys.front().key + " " + std::to_string(count));
        }
        changes.emplace_back(v.key, value_text(list[i]));
      }
      add(row_name(given_name(table), changes), changes, table);
    }
  }

  void add_grid(const toml::table& table) {
    const std::vector<Variation> keys = variations(table, place(table));
    if (keys.empty()) wrong(place(table), "[[grid]] has no lists");
    std::vector<size_t> at(keys.size(), 0);
    for (bool more = true; more;) {
      std::vector<Change> changes;
      for (size_t k = 0; k < keys.size(); ++k) {
        changes.emplace_back(keys[k].key, value_text(list_of(keys[k], place(table))[at[k]]));
      }
      add(row_name(given_name(table), changes), changes, table);
      // The last key goes through its values first, as digits count.
      more = false;
      for (size_t k = keys.size(); k-- > 0 && !more;) {
        more = ++at[k] < list_of(keys[k], place(table)).size();
        if (!more) at[k] = 0;
      }
    }
  }

  const toml::table& table_;
  std::string where_;
  SweepPlan plan_;
};

SweepPlan read_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path)) {
    throw Error(ErrorCode::not_found, path + ": no such sweep",
                "sweeps/ has one; `heed sweep --help` says what is in it");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    const toml::table table = toml::parse(text, path);
    return SweepReader(table, path).read();
  } catch (const toml::parse_error& error) {
    wrong(path + ":" + std::to_string(error.source().begin.line), std::string(error.description()));
  }
}

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

// What a row is trained by, but for where.
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

void write_whole(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// Null where there is none, or it is not one of ours.
Json read_json(const std::string& path) {
  if (!fs::exists(path)) return {};
  const MappedFile file(path);
  return parse_object({reinterpret_cast<const char*>(file.bytes().data()), file.size()});
}

// By which settings a row's folder was begun; null where none is there, or it does not say.
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

// Whether two trainings are one and the same, but for how long they take. What was begun before
// there was a key was begun with its default.
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

// Whether a training that was begun with `before` is, after more steps, one with `now`.
bool goes_on(const Json& before, const Json& now) {
  if (!before.is_object()) return true;
  return same_but_steps(before, now) && steps_in(before) <= steps_in(now);
}

// A name for settings, the same in every run (FNV-1a).
std::string short_hash(const std::string& text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", hash);
  return digits;
}

// Whether a folder's name is `row` with a hash behind it.
bool is_hashed(const std::string& name, const std::string& row) {
  constexpr size_t kDigits = 8;
  return name.size() == row.size() + 1 + kDigits && name.starts_with(row + "-") &&
         name.find_first_not_of("0123456789abcdef", row.size() + 1) == std::string::npos;
}

// Where a row is trained whose own folder has another training. Where there is one to go on with,
// in a folder of whatever hash, that is it; the one of most steps, if there are several.
std::string changed_folder(const SweepPlan& plan, const SweepRow& row, const Json& now,
                           const std::set<std::string>& taken) {
  std::string best;
  int64_t best_steps = -1;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(plan.out, missing)) {
    const std::string name = entry.path().filename();
    if (!is_hashed(name, row.folder) || taken.contains(name)) continue;
    const Json before = settings_in(entry.path());
    if (!before.is_object() || !goes_on(before, now) || steps_in(before) <= best_steps) continue;
    best = name, best_steps = steps_in(before);
  }
  if (!best.empty()) return best;
  Json without_steps = now;
  without_steps.erase(kSteps);
  std::string folder = row.folder + "-" + short_hash(without_steps.dump());
  // There may be one that has more steps already.
  if (goes_on(settings_in(plan.out + "/" + folder), now)) return folder;
  return row.folder + "-" + short_hash(now.dump());
}

// A row whose settings were changed since it was begun is another training, in another folder:
// going on would report what the old settings have learnt.
void choose_folders(SweepPlan& plan) {
  std::set<std::string> taken;
  for (const SweepRow& row : plan.rows) taken.insert(row.folder);
  for (SweepRow& row : plan.rows) {
    const Json now = settings_of(plan, row);
    if (goes_on(settings_in(folder_of(plan, row)), now)) continue;
    row.folder = changed_folder(plan, row, now, taken);
  }
}

// Nothing when the row has not been finished with these settings.
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

void check_columns(const std::vector<std::string>& columns,
                   const std::vector<std::string>& metrics) {
  for (const std::string& column : columns) {
    if (std::ranges::find(metrics, column) != metrics.end()) continue;
    std::string names;
    for (const std::string& metric : metrics) names += (names.empty() ? "" : ", ") + metric;
    const auto near = nearest(column, metrics);
    throw Error(ErrorCode::invalid_argument, "columns has '" + column + "', this training has " +
                                                 names +
                                                 (near ? " (did you mean " + *near + "?)" : ""));
  }
}

class SweepRun {
 public:
  explicit SweepRun(const SweepOptions& options) : options_(options) {
    result_.plan = plan_sweep(options);
    for (const SweepRow& row : result_.plan.rows) {
      SweepRowResult& r = result_.rows.emplace_back();
      r.row = row;
      if (auto finished = finished_result(result_.plan, row)) {
        r.status = RowStatus::finished;
        r.result = std::move(*finished);
      }
    }
  }

  SweepResult run() {
    make_folder(result_.plan.out);
    for (size_t i = 0; i < result_.rows.size() && !stops(); ++i) {
      if (result_.rows[i].status != RowStatus::finished) run_row(i);
      write_tables();
    }
    return std::move(result_);
  }

 private:
  bool stops() const { return options_.stop && options_.stop->load(); }

  void run_row(size_t i) {
    const SweepPlan& plan = result_.plan;
    SweepRowResult& r = result_.rows[i];
    if (options_.row_begins) options_.row_begins(i, plan);
    TrainOptions options = train_options(plan, r.row);
    options.memory_bytes = options_.memory_bytes;
    options.threads = options_.threads;
    options.progress = options_.progress;
    options.note = options_.note;
    options.stop = options_.stop;
    options.validator = options_.validator;
    try {
      make_folder(options.out);
      write_whole(options.out + kSettingsFile, settings_of(plan, r.row).dump(2) + "\n");
      r.result = train(options);
    } catch (const Error& error) {
      // One that goes wrong must not cost the others; our own faults are not the row's.
      if (error.code() == ErrorCode::internal) throw;
      r.status = RowStatus::failed;
      r.error = error.what();
      if (options_.note) options_.note("row " + r.row.name + " failed: " + r.error);
      return;
    }
    r.status = r.result.finished ? RowStatus::finished : RowStatus::stopped;
    if (!r.result.finished) return;
    const Json json{{"name", r.row.name},
                    {"settings", settings_of(plan, r.row)},
                    {"result", result_json(r.result)}};
    write_whole(folder_of(plan, r.row) + kResultFile, json.dump(2) + "\n");
  }

  void write_tables() const {
    const std::string& out = result_.plan.out;
    write_whole(out + "/table.txt", sweep_table(result_, TableFormat::text));
    write_whole(out + "/table.md", sweep_table(result_, TableFormat::markdown));
    write_whole(out + "/table.json", sweep_table(result_, TableFormat::json));
    write_whole(out + "/sweep.html", sweep_html(result_));
  }

  const SweepOptions& options_;
  SweepResult result_;
};

}  // namespace

SweepPlan plan_sweep(const SweepOptions& options) {
  SweepPlan plan = read_plan(options.file);
  plan.set.insert(plan.set.end(), options.set.begin(), options.set.end());
  if (!options.out.empty()) plan.out = options.out;
  if (plan.out.empty()) plan.out = "runs/" + fs::path(options.file).stem().string();
  std::string problems;
  for (const SweepRow& row : plan.rows) {
    try {
      const Recipe recipe = read_recipe(plan.recipe, sets_of(plan, row));
      check(recipe_model_config(recipe), "[model]");
      if (plan.columns.empty()) plan.columns = {recipe.validate.metric};
      check_columns(plan.columns, metrics_of(recipe.objective.options.kind));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal || error.code() == ErrorCode::not_found) throw;
      problems += (problems.empty() ? "" : "; ") + row.name + ": " + error.what();
    }
  }
  if (!problems.empty()) {
    throw Error(ErrorCode::invalid_argument, options.file + ": " + problems,
                "nothing was run; heed train RECIPE --print-config shows every key");
  }
  choose_folders(plan);
  return plan;
}

const char* name(RowStatus status) {
  switch (status) {
    case RowStatus::waiting:
      return "waiting";
    case RowStatus::stopped:
      return "stopped";
    case RowStatus::finished:
      return "finished";
    case RowStatus::failed:
      return "failed";
  }
  return "";
}

bool SweepResult::finished() const {
  return std::ranges::all_of(rows, [](const SweepRowResult& r) {
    return r.status == RowStatus::finished || r.status == RowStatus::failed;
  });
}

size_t SweepResult::failures() const {
  return static_cast<size_t>(std::ranges::count(rows, RowStatus::failed, &SweepRowResult::status));
}

SweepResult sweep(const SweepOptions& options) { return SweepRun(options).run(); }

}  // namespace heed
