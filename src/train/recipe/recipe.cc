#include "train/recipe/recipe.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/suggest.h"
#include "heed/error.h"
#include "model/config.h"
#include "model/hugging_face/json_values.h"
#include "model/network.h"
#include "model/presets.h"
#include "text/unicode/utf8.h"
#include "train/recipe/recipe_fields.h"

namespace heed {
namespace {

// JSON writes values as TOML does, but for numbers that it has no word for.
std::string toml_text(const Json& value) {
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();
  if (std::isnan(number)) return "nan";
  return std::isfinite(number) ? value.dump() : number > 0 ? "inf" : "-inf";
}

// What json_values.h has no reader for: texts and lists of them.
std::string read_field(const Json& json, std::string& field) {
  if (!json.is_string()) return "a text in quotes";
  field = json.get<std::string>();
  return {};
}
std::string read_field(const Json& json, std::vector<std::string>& field) {
  if (json.is_string()) return field = {json.get<std::string>()}, std::string();
  if (!json.is_array()) return "a list of texts";
  std::vector<std::string> values;
  for (const Json& element : json) {
    if (!element.is_string()) return "a list of texts";
    values.push_back(element.get<std::string>());
  }
  field = std::move(values);
  return {};
}
std::string read_field(const Json& json, double& field) {
  if (!json.is_number()) return "a number";
  field = json.get<double>();
  return {};
}
template <class T>
std::string read_field(const Json& json, T& field) {
  return read_value(json, field);
}

bool is_finite(const Json& json) {
  return !json.is_number_float() || std::isfinite(json.get<double>());
}

// Fills the field, or says in full what is wrong with it.
template <class T>
std::string read_key(const std::string& key, const Json& json, T& field) {
  const std::string expected = is_finite(json) ? read_field(json, field) : "a finite number";
  return expected.empty() ? "" : key + " is " + toml_text(json) + ", expected " + expected;
}

Json to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json json = Json::object();
    for (const auto& [key, value] : *table) json[std::string(key.str())] = to_json(value);
    return json;
  }
  if (const auto* array = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& value : *array) json.push_back(to_json(value));
    return json;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  std::ostringstream text;  // dates: no key wants one, so the reader will object
  text << toml::node_view<const toml::node>(node);
  return text.str();
}

toml::table parse_toml(const std::string& text, const std::string& where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::invalid_argument,
                where + ":" + std::to_string(error.source().begin.line) + ": " +
                    std::string(error.description()),
                "a recipe is TOML: [section] lines, and key = value lines");
  }
}

// One value that somebody gave, and where.
struct Given {
  std::string section, key;
  Json value;
  std::string origin;
  std::string text{};  // of --set: the value as it was written

  std::string name() const { return section + "." + key; }
};

std::vector<Given> given_by_file(const std::string& text, const std::string& where,
                                 std::vector<std::string>& problems) {
  std::vector<Given> list;
  const std::string file = std::filesystem::path(where).filename();
  for (const auto& [section, node] : parse_toml(text, where)) {
    const std::string line = file + ":" + std::to_string(node.source().begin.line);
    const auto* table = node.as_table();
    if (!table) {
      problems.push_back(line + ": " + std::string(section.str()) + " is outside of any section");
      continue;
    }
    for (const auto& [key, value] : *table) {
      list.push_back({std::string(section.str()), std::string(key.str()), to_json(value),
                      file + ":" + std::to_string(value.source().begin.line)});
    }
  }
  return list;
}

// A value as in TOML; what is not one is a text: --set model.preset=gpt2.
Json set_value(const std::string& text) {
  try {
    const toml::table table = toml::parse("value = " + text);
    if (table.size() == 1) return to_json(*table.get("value"));
  } catch (const toml::parse_error&) {
  }
  return text;
}

std::vector<Given> given_by_sets(const std::vector<std::string>& sets,
                                 std::vector<std::string>& problems) {
  std::vector<Given> list;
  for (const std::string& set : sets) {
    if (!is_utf8(set)) {  // as TOML is, which the file's reader has seen to
      problems.push_back("--set: bytes that are not UTF-8");
      continue;
    }
    const size_t equals = set.find('='), dot = set.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
      problems.push_back("--set " + set + ": expected section.key=value");
      continue;
    }
    list.push_back({set.substr(0, dot), set.substr(dot + 1, equals - dot - 1),
                    set_value(set.substr(equals + 1)), "--set", set.substr(equals + 1)});
  }
  return list;
}

std::vector<std::string> model_fields() {
  std::vector<std::string> names;
  const ModelConfig config;
  describe(config, [&](const char* name, const auto&, const char*) { names.emplace_back(name); });
  return names;
}

std::string suggestion(const std::string& wanted, const std::vector<std::string>& names) {
  const std::optional<std::string> near = nearest(wanted, names);
  return near ? " (did you mean " + *near + "?)" : "";
}

void read_corpora(const Given& given, Recipe& recipe, std::vector<std::string>& problems) {
  const std::string where = given.origin + ": data.corpora";
  if (!given.value.is_array()) {
    problems.push_back(where + ": expected [[data.corpora]] tables");
    return;
  }
  recipe.data.corpora.clear();
  for (const Json& table : given.value) {
    CorpusOptions& corpus = recipe.data.corpora.emplace_back();
    std::vector<std::string> names;
    describe_corpus(corpus, "files", [&](const char* key, auto& field, const char*) {
      names.emplace_back(key);
      if (!table.is_object() || !table.contains(key)) return;
      const std::string problem = read_key(where + "." + key, table[key], field);
      if (!problem.empty()) problems.push_back(problem);
    });
    for (const auto& [key, value] : table.items()) {
      if (std::ranges::find(names, key) == names.end()) {
        problems.push_back(where + ": unknown key " + key + suggestion(key, names));
      }
    }
  }
}

// For a key that takes texts, a bare number of --set is one: data.label_column=2.
template <class T>
Json value_for(const Given& given, const T&) {
  constexpr bool kTakesText =
      std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>;
  return kTakesText && given.value.is_number() && !given.text.empty() ? Json(given.text)
                                                                      : given.value;
}

// Puts one value where it belongs, or says why not.
void apply(const Given& given, Recipe& recipe, std::vector<std::string>& problems) {
  if (given.section == "data" && given.key == "corpora") {
    read_corpora(given, recipe, problems);
    recipe.origins[given.name()] = given.origin;
    return;
  }
  std::vector<std::string> sections, keys;
  bool found = false;
  describe_recipe(recipe, [&](const char* section, const char* key, auto& field, const char*) {
    if (sections.empty() || sections.back() != section) sections.emplace_back(section);
    if (given.section != section) return;
    keys.emplace_back(key);
    if (given.key != key) return;
    found = true;
    const std::string problem =
        read_key(given.origin + ": " + given.name(), value_for(given, field), field);
    if (!problem.empty()) problems.push_back(problem);
  });
  const std::vector<std::string> fields = model_fields();
  if (given.section == "model") {
    if (!found && std::ranges::find(fields, given.key) != fields.end()) {
      found = true;
      if (!is_finite(given.value)) {
        problems.push_back(given.origin + ": " + given.name() + " is " + toml_text(given.value) +
                           ", expected a finite number");
      }
      std::erase_if(recipe.model.overrides, [&](const auto& o) { return o.first == given.key; });
      recipe.model.overrides.emplace_back(given.key, given.value.dump());
    }
    keys.insert(keys.end(), fields.begin(), fields.end());
  }
  if (found) {
    recipe.origins[given.name()] = given.origin;
  } else if (keys.empty()) {
    problems.push_back(given.origin + ": unknown section " + given.section +
                       suggestion(given.section, sections));
  } else {
    problems.push_back(given.origin + ": unknown key " + given.name() +
                       suggestion(given.key, keys));
  }
}

class Checks {
 public:
  explicit Checks(std::vector<std::string>& problems) : problems_(problems) {}
  void unless(bool fine, const std::string& problem) {
    if (!fine) problems_.push_back(problem);
  }
  template <class T>
  void at_least(const char* key, T value, T least) {
    unless(value >= least, std::string(key) + " is " + Json(value).dump() + ", must be at least " +
                               Json(least).dump());
  }
  void share(const char* key, double value) {
    unless(value >= 0 && value <= 1,
           std::string(key) + " is " + Json(value).dump() + ", must be from 0 to 1");
  }

 private:
  std::vector<std::string>& problems_;
};

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

void check_validation(const Recipe& r, Checks& c) {
  const std::vector<std::string> metrics = metrics_of(r.objective.options.kind);
  c.unless(std::ranges::find(metrics, r.validate.metric) != metrics.end(),
           "validate.metric is '" + r.validate.metric + "', " +
               std::string(name_of(r.objective.options.kind)) + " has " + list_of(metrics) +
               suggestion(r.validate.metric, metrics));
  static const std::vector<std::string> kTokenizers{"13a", "intl", "zh", "char", "none"};
  c.unless(std::ranges::find(kTokenizers, r.validate.tokenize) != kTokenizers.end(),
           "validate.tokenize is '" + r.validate.tokenize + "', expected " + list_of(kTokenizers) +
               suggestion(r.validate.tokenize, kTokenizers));
  c.at_least("validate.beam", r.validate.beam, 1);
  c.at_least("validate.samples", r.validate.samples, 0);
  c.at_least<int64_t>("validate.max_sentences", r.validate.max_sentences, 0);
}

// The model as far as the recipe itself tells: nothing where only the folder that it goes on from
// does, or where it has a mistake, which is told by those who make the model.
std::optional<ModelConfig> told_config(const Recipe& r) {
  if (!r.model.from.empty()) return std::nullopt;
  try {
    return recipe_model_config(r);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool answers_with_words(Objective objective) {
  return objective != Objective::classification && objective != Objective::regression &&
         objective != Objective::tagging;
}

// What the data and the steps would refuse too, but only after the corpus was prepared.
void check_objective(const Recipe& r, Checks& c) {
  const ObjectiveOptions& o = r.objective.options;
  const std::string kind(name_of(o.kind));
  c.share("objective.mask_rate", o.mask_rate);
  c.share("objective.subword_dropout", o.subword_dropout);
  const auto writes_xx = [](const CorpusOptions& corpus) {
    return corpus.tree_words == LinearWords::xx;
  };
  c.unless(o.kind == Objective::parsing ||
               (writes_xx(r.data.corpus) && std::ranges::all_of(r.data.corpora, writes_xx)),
           "data.tree_words is for parsing, objective.kind is " + kind);
  c.unless(o.subword_dropout == 0 || o.kind == Objective::translation,
           "objective.subword_dropout is for translation, objective.kind is " + kind);
  c.at_least("objective.r_drop", r.objective.loss.r_drop, 0.0f);
  if (r.objective.loss.r_drop <= 0) return;
  c.unless(answers_with_words(o.kind),
           "objective.r_drop is for objectives that answer with words, objective.kind is " + kind);
  c.unless(r.objective.teacher.empty(),
           "[objective] has both r_drop and teacher: one of them says what to answer");
  const std::optional<ModelConfig> model = told_config(r);
  if (!model) return;
  c.unless(has_dropout(*model),
           "objective.r_drop needs dropout, without which this model reads a text the same way "
           "twice");
  c.unless(model->logits_soft_cap == 0,
           "objective.r_drop is not for models with model.logits_soft_cap");
}

// More would not end; and their steps can be counted.
constexpr double kMostEpochs = 1e9;

void check_values(const Recipe& r, Checks c) {
  c.unless(r.model.preset.empty() != r.model.from.empty(), "[model] needs either preset or from");
  c.unless(r.data.corpus.files.empty() != r.data.corpora.empty(),
           "[data] needs either train or [[data.corpora]]");
  for (const CorpusOptions& corpus : r.data.corpora) {
    c.unless(!corpus.files.empty(), "a [[data.corpora]] has no files");
  }
  c.unless(r.train.steps > 0 || r.train.epochs > 0, "[train] needs steps or epochs");
  c.unless(r.train.steps == 0 || r.train.epochs == 0, "[train] has both steps and epochs");
  c.at_least<int64_t>("train.steps", r.train.steps, 0);
  c.at_least("train.epochs", r.train.epochs, 0.0);
  c.unless(r.train.epochs <= kMostEpochs, "train.epochs is " + Json(r.train.epochs).dump() +
                                              ", must be at most " + Json(kMostEpochs).dump());
  c.at_least("train.accumulate", r.train.accumulate, 1);
  c.unless(r.train.accumulate <= kMostBatches,
           "train.accumulate is " + std::to_string(r.train.accumulate) + ", must be at most " +
               std::to_string(kMostBatches) + ": make data.batch_tokens larger instead");
  c.at_least<int64_t>("train.log_every", r.train.log_every, 1);
  c.at_least<int64_t>("train.checkpoint_every", r.train.checkpoint_every, 1);
  c.at_least("train.keep_last", r.train.keep_last, 1);
  c.at_least("train.keep_best", r.train.keep_best, 0);
  c.at_least("train.average_count", r.train.average_count, 1);
  c.at_least<int64_t>("data.batch_tokens", r.data.batch_tokens, 1);
  c.at_least<int64_t>("data.batch_sentences", r.data.batch_sentences, 0);
  c.at_least<int64_t>("data.max_tokens", r.data.filters.max_tokens, 1);
  c.at_least<int64_t>("tokenizer.vocabulary", r.tokenizer.vocabulary, 1);
  c.at_least<int64_t>("tokenizer.sentinels", r.tokenizer.sentinels, 0);
  c.at_least<int64_t>("schedule.warmup_steps", r.schedule.warmup_steps, 0);
  c.at_least<int64_t>("schedule.steps", r.schedule.steps, 0);
  c.at_least("schedule.warmup_learning_rate", r.schedule.warmup_learning_rate, 0.0);
  c.at_least("schedule.final_learning_rate", r.schedule.final_learning_rate, 0.0);
  c.at_least("objective.soft_weight", r.objective.loss.soft_weight, 0.0f);
  c.at_least("objective.label_weight", r.objective.loss.label_weight, 0.0f);
  c.at_least("objective.cosine_weight", r.objective.loss.cosine_weight, 0.0f);
  c.at_least<int64_t>("validate.every", r.validate.every, 1);
  c.at_least<int64_t>("validate.batches", r.validate.batches, 0);
  c.at_least("validate.patience", r.validate.patience, 0);
  c.at_least("optimizer.weight_decay", r.optimizer.weight_decay, 0.0f);
  c.at_least("optimizer.clip_norm", r.optimizer.clip_norm, 0.0f);
  c.unless(r.optimizer.learning_rate > 0, "optimizer.learning_rate must be positive");
  c.unless(r.optimizer.eps > 0, "optimizer.eps must be positive");
  for (const auto& [key, value] :
       {std::pair{"optimizer.beta1", double{r.optimizer.beta1}},
        {"optimizer.beta2", double{r.optimizer.beta2}},
        {"optimizer.ema_decay", r.optimizer.ema_decay},
        {"objective.label_smoothing", double{r.objective.loss.label_smoothing}},
        {"validate.share", r.validate.share}}) {
    c.unless(value >= 0 && value < 1,
             std::string(key) + " is " + Json(value).dump() + ", must be in [0, 1)");
  }
  check_objective(r, c);
  c.unless(r.objective.loss.temperature > 0, "objective.temperature must be positive");
  c.unless(r.validate.files.empty() || r.validate.share == 0,
           "[validate] has both files and share");
  const bool validates = !r.validate.files.empty() || r.validate.share > 0;
  c.unless(validates || r.validate.patience == 0, "validate.patience needs validate.files");
  c.unless(validates || r.train.average != Averaging::best,
           "train.average = \"best\" needs validate.files");
  check_validation(r, c);
}

}  // namespace

std::vector<std::string> metrics_of(Objective objective) {
  switch (objective) {
    case Objective::translation:
      return {"loss", "perplexity", "accuracy", "bleu", "chrf", "exact"};
    case Objective::classification:
      return {"loss", "accuracy", "f1", "matthews"};
    case Objective::regression:
      return {"loss", "pearson", "spearman"};
    case Objective::tagging:
      return {"loss", "accuracy", "f1"};
    case Objective::parsing:
      return {"loss", "perplexity", "accuracy", "f1"};
    default:
      return {"loss", "perplexity", "accuracy"};
  }
}

std::string Recipe::origin(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? "default" : found->second;
}

Recipe parse_recipe(const std::string& text, const std::string& where,
                    const std::vector<std::string>& sets) {
  Recipe recipe;
  recipe.path = where;
  std::vector<std::string> problems;
  for (const Given& given : given_by_file(text, where, problems)) apply(given, recipe, problems);
  for (const Given& given : given_by_sets(sets, problems)) apply(given, recipe, problems);
  if (problems.empty()) check_values(recipe, Checks(problems));
  if (!problems.empty()) {
    std::string message = where + ": " + problems.front();
    for (size_t i = 1; i < problems.size(); ++i) message += "; " + problems[i];
    throw Error(ErrorCode::invalid_argument, message,
                "heed train RECIPE --print-config shows every key and its meaning");
  }
  return recipe;
}

Recipe read_recipe(const std::string& path, const std::vector<std::string>& sets) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::not_found, path + ": no such recipe",
                "recipes/ has one for each kind of task");
  }
  return parse_recipe({std::istreambuf_iterator<char>(file), {}}, path, sets);
}

bool overrides_model(const Recipe& recipe, std::string_view field) {
  return std::ranges::any_of(recipe.model.overrides,
                             [&](const auto& entry) { return entry.first == field; });
}

ModelConfig recipe_model_config(const Recipe& recipe) {
  const ModelConfig start = recipe.model.from.empty() ? preset(recipe.model.preset)
                                                      : Network::load(recipe.model.from).config();
  Json overrides = Json::object();
  for (const auto& [name, value] : recipe.model.overrides) overrides[name] = Json::parse(value);
  return config_from_json(overrides.dump(), start, recipe.path + ": [model]");
}

std::vector<TrainSetting> resolved_settings(const Recipe& recipe, const ModelConfig* fitted) {
  std::vector<TrainSetting> list;
  std::string section_before;
  const auto add_model = [&] {
    const ModelConfig config = recipe_model_config(recipe);
    const std::string base =
        recipe.model.from.empty() ? "preset " + recipe.model.preset : recipe.model.from;
    describe(config, [&](const char* name, const auto& field, const char* help) {
      const bool mine = overrides_model(recipe, name);
      list.push_back({"model", name, toml_text(value_json(field)),
                      mine ? recipe.origin(std::string("model.") + name) : base, help});
    });
    if (!fitted) return;
    describe(*fitted, [&](const char* name, const auto& field, const char*) {
      for (TrainSetting& s : list) {
        const std::string value = toml_text(value_json(field));
        if (s.section != "model" || s.key != name || s.value == value) continue;
        s.value = value, s.origin = kFittedOrigin;
      }
    });
  };
  describe_recipe(recipe,
                  [&](const char* section, const char* key, const auto& field, const char* help) {
                    if (section_before == "model" && std::string_view(section) != "model")
                      add_model();
                    section_before = section;
                    list.push_back({section, key, toml_text(value_json(field)),
                                    recipe.origin(std::string(section) + "." + key), help});
                  });
  if (!recipe.data.corpora.empty()) {
    std::string tables;
    for (const CorpusOptions& corpus : recipe.data.corpora) {
      std::string fields;
      describe_corpus(corpus, "files", [&](const char* key, const auto& field, const char*) {
        fields +=
            (fields.empty() ? "" : ", ") + std::string(key) + " = " + toml_text(value_json(field));
      });
      tables += (tables.empty() ? "{" : ", {") + fields + "}";
    }
    const auto at = std::ranges::find(list, "tokenizer", &TrainSetting::section);
    list.insert(at, {"data", "corpora", "[" + tables + "]", recipe.origin("data.corpora"),
                     "several corpora, each with its own files and weight"});
  }
  return list;
}

std::map<std::string, std::string> default_settings() {
  std::map<std::string, std::string> values;
  const Recipe recipe{};
  describe_recipe(recipe,
                  [&](const char* section, const char* key, const auto& field, const char*) {
                    values[std::string(section) + "." + key] = toml_text(value_json(field));
                  });
  const ModelConfig model;
  describe(model, [&](const char* key, const auto& field, const char*) {
    values[std::string("model.") + key] = toml_text(value_json(field));
  });
  return values;
}

int64_t parse_bytes(const std::string& text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::vector<std::pair<std::string, double>> units{{"", 1},
                                                          {"B", 1},
                                                          {"K", 1e3},
                                                          {"KB", 1e3},
                                                          {"M", 1e6},
                                                          {"MB", 1e6},
                                                          {"G", 1e9},
                                                          {"GB", 1e9},
                                                          {"T", 1e12},
                                                          {"TB", 1e12},
                                                          {"KIB", 1024.},
                                                          {"MIB", 1024. * 1024},
                                                          {"GIB", 1024. * 1024 * 1024},
                                                          {"TIB", 1024. * 1024 * 1024 * 1024}};
  const auto found = std::ranges::find(units, unit, &std::pair<std::string, double>::first);
  const double bytes = found == units.end() ? 0 : number * found->second;
  if (problem != std::errc() || found == units.end() || !(bytes >= 1) || bytes > 1e18) {
    throw Error(ErrorCode::invalid_argument, "expected an amount of memory, found '" + text + "'",
                "for example 4GB, 512MiB or 2000000000");
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace heed
