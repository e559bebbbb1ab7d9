#include "train/recipe/recipe.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "heed/error.h"
#include "model/config.h"
#include "model/hugging_face/json_values.h"
#include "model/network.h"
#include "model/presets.h"
#include "train/recipe/recipe_checks.h"
#include "train/recipe/recipe_reader.h"

namespace heed {

std::string Recipe::origin(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? "default" : found->second;
}

Recipe parse_recipe(const std::string& text, const std::string& where,
                    const std::vector<std::string>& sets) {
  Recipe recipe;
  recipe.path = where;
  std::vector<RecipeProblem> problems;
  read_recipe_text(text, where, recipe, problems);
  read_recipe_sets(sets, recipe, problems);
  if (problems.empty()) check_recipe(recipe, problems);
  if (!problems.empty()) throw_problems(where, problems);
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
    throw Error(ErrorCode::invalid_argument,
                "an amount of memory must be a number with a unit, got '" + text + "'",
                "for example 4GB, 512MiB or 2000000000");
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace heed
