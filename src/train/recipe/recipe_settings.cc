// A recipe as a list of settings: for --print-config, reports and checkpoints.
#include <algorithm>

#include "model/config.h"
#include "train/recipe/recipe.h"
#include "train/recipe/recipe_checks.h"
#include "train/recipe/recipe_fields.h"
#include "train/recipe/toml_text.h"

namespace heed {
namespace {

template <class T>
std::vector<std::string> values_of(const T&) {
  std::vector<std::string> names;
  if constexpr (std::is_enum_v<T>) {
    for (const auto& entry : kEnumNames<T>) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace

std::vector<TrainSetting> resolved_settings(const Recipe& recipe, const ModelConfig* fitted) {
  std::vector<TrainSetting> list;
  std::string section_before;
  const auto add_model = [&] {
    const ModelConfig config = recipe_model_config(recipe);
    const std::string base =
        recipe.model.from.empty() ? "preset " + recipe.model.preset : recipe.model.from;
    describe(config, [&](const char* name, const auto& field, const char* help) {
      const bool is_override = overrides_model(recipe, name);
      list.push_back({"model", name, toml_text(value_json(field)),
                      is_override ? recipe.origin(std::string("model.") + name) : base, help,
                      values_of(field)});
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
  describe_recipe(
      recipe, [&](const char* section, const char* key, const auto& field, const char* help) {
        if (section_before == "model" && std::string_view(section) != "model") add_model();
        section_before = section;
        list.push_back({section, key, toml_text(value_json(field)),
                        recipe.origin(std::string(section) + "." + key), help, values_of(field)});
        if (list.back().values.empty()) {
          list.back().values = text_values(recipe, std::string(section) + "." + key);
        }
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
    list.insert(at, {"data",
                     "corpora",
                     "[" + tables + "]",
                     recipe.origin("data.corpora"),
                     "several corpora, each with its own files and weight",
                     {}});
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

}  // namespace heed
