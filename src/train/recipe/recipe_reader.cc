#include "train/recipe/recipe_reader.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>

#include "heed/error.h"
#include "model/config.h"
#include "text/unicode/utf8.h"
#include "train/recipe/recipe_fields.h"
#include "train/recipe/toml_text.h"

namespace heed {
namespace {

// Kinds that json_values.h does not read: strings and lists of them.
std::string read_field(const Json& json, std::string& field) {
  if (!json.is_string()) return "a string in quotes";
  field = json.get<std::string>();
  return {};
}
std::string read_field(const Json& json, std::vector<std::string>& field) {
  if (json.is_string()) return field = {json.get<std::string>()}, std::string();
  if (!json.is_array()) return "a list of strings";
  std::vector<std::string> values;
  for (const Json& element : json) {
    if (!element.is_string()) return "a list of strings";
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

// Fills the field, or returns the whole error text.
template <class T>
std::string read_key(const std::string& key, const Json& json, T& field) {
  const std::string expected = is_finite(json) ? read_field(json, field) : "a finite number";
  return expected.empty() ? "" : key + " must be " + expected + ", got " + toml_text(json);
}

constexpr const char* kKeysHint = "`heed train RECIPE --print-config` lists every key";
constexpr const char* kTomlHint = "a recipe is TOML: [section] lines, and key = value lines";

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
  std::ostringstream text;  // a date, which no key accepts: the reader reports it
  text << toml::node_view<const toml::node>(node);
  return text.str();
}

std::string line_at(const std::string& text, size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (size_t i = 0; i < number; ++i) {
    if (!std::getline(lines, line)) return {};
  }
  return line;
}

// The column, from 1, of a quote that the line opens and does not close.
std::optional<size_t> open_quote(std::string_view line) {
  if (line.find("\"\"\"") != std::string_view::npos || line.find("'''") != std::string_view::npos) {
    return std::nullopt;  // a string over several lines
  }
  std::optional<size_t> open;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!open) {
      if (line[i] == '#') break;
      if (line[i] == '"' || line[i] == '\'') open = i;
    } else if (line[i] == '\\' && line[*open] == '"') {
      ++i;  // an escaped character
    } else if (line[i] == line[*open]) {
      open.reset();
    }
  }
  return open ? std::optional(*open + 1) : std::nullopt;
}

toml::table parse_toml(const std::string& text, const std::string& where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    // The parser reports a missing quote as a control character, on this line or the next.
    const size_t last = error.source().begin.line;
    for (const size_t number : {last - 1, last}) {
      const std::optional<size_t> column = open_quote(line_at(text, number));
      if (!column) continue;
      throw Error(ErrorCode::invalid_argument,
                  where + ":" + std::to_string(number) + ": the quote in column " +
                      std::to_string(*column) + " must be closed on its line",
                  "a string has a quote on both sides: key = \"value\"");
    }
    throw Error(ErrorCode::invalid_argument,
                where + ":" + std::to_string(last) + ": " + std::string(error.description()),
                kTomlHint);
  }
}

// A value of the file or of --set, and its origin.
struct Given {
  std::string section, key;
  Json value;
  std::string origin;  // "recipe.toml:12", or --set
  std::string place;   // the same with the path, for messages
  std::string text{};  // --set: the value as written

  std::string name() const { return section + "." + key; }
};

std::vector<Given> given_by_file(const std::string& text, const std::string& where,
                                 std::vector<RecipeProblem>& problems) {
  std::vector<Given> list;
  const std::string file = std::filesystem::path(where).filename();
  for (const auto& [section, node] : parse_toml(text, where)) {
    const auto* table = node.as_table();
    if (!table) {
      problems.push_back({where + ":" + std::to_string(node.source().begin.line) + ": " +
                              std::string(section.str()) + " must be in a section",
                          "put it below a line such as [train]"});
      continue;
    }
    for (const auto& [key, value] : *table) {
      const std::string line = ":" + std::to_string(value.source().begin.line);
      list.push_back({std::string(section.str()), std::string(key.str()), to_json(value),
                      file + line, where + line});
    }
  }
  return list;
}

// A TOML value; anything else is a string: --set model.preset=gpt2.
Json set_value(const std::string& text) {
  try {
    const toml::table table = toml::parse("value = " + text);
    if (table.size() == 1) return to_json(*table.get("value"));
  } catch (const toml::parse_error&) {
  }
  return text;
}

std::vector<Given> given_by_sets(const std::vector<std::string>& sets,
                                 std::vector<RecipeProblem>& problems) {
  std::vector<Given> list;
  for (const std::string& set : sets) {
    if (!is_utf8(set)) {  // the TOML parser checks files
      problems.push_back({"--set must be UTF-8", "check the encoding of the terminal"});
      continue;
    }
    const size_t equals = set.find('='), dot = set.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
      problems.push_back(
          {"--set must be section.key=value, got " + set, "for example --set train.steps=100"});
      continue;
    }
    list.push_back({set.substr(0, dot), set.substr(dot + 1, equals - dot - 1),
                    set_value(set.substr(equals + 1)), "--set", "--set", set.substr(equals + 1)});
  }
  return list;
}

std::vector<std::string> model_fields() {
  std::vector<std::string> names;
  const ModelConfig config;
  describe(config, [&](const char* name, const auto&, const char*) { names.emplace_back(name); });
  return names;
}

void read_corpora(const Given& given, Recipe& recipe, std::vector<RecipeProblem>& problems) {
  const std::string where = given.place + ": data.corpora";
  if (!given.value.is_array()) {
    problems.push_back({where + " must be [[data.corpora]] tables",
                        "write [[data.corpora]] above the keys of each corpus"});
    return;
  }
  recipe.data.corpora.clear();
  for (const Json& table : given.value) {
    CorpusOptions& corpus = recipe.data.corpora.emplace_back();
    std::vector<std::string> names;
    describe_corpus(corpus, "files", [&](const char* key, auto& field, const char* help) {
      names.emplace_back(key);
      if (!table.is_object() || !table.contains(key)) return;
      const std::string problem = read_key(where + "." + key, table[key], field);
      if (!problem.empty()) problems.push_back({problem, std::string(key) + ": " + help});
    });
    for (const auto& [key, value] : table.items()) {
      if (std::ranges::find(names, key) == names.end()) {
        problems.push_back({where + ": unknown key " + key + suggestion(key, names), kKeysHint});
      }
    }
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// For a string key, a bare number of --set is a string: data.label_column=2.
template <class T>
Json value_for(const Given& given, const T&) {
  constexpr bool kTakesText =
      std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>;
  return kTakesText && given.value.is_number() && !given.text.empty() ? Json(given.text)
                                                                      : given.value;
}

// Stores one value, or adds a problem.
void apply(const Given& given, Recipe& recipe, std::vector<RecipeProblem>& problems) {
  if (given.section == "data" && given.key == "corpora") {
    read_corpora(given, recipe, problems);
    recipe.origins[given.name()] = given.origin;
    return;
  }
  std::vector<std::string> sections, keys;
  bool found = false;
  describe_recipe(recipe, [&](const char* section, const char* key, auto& field, const char* help) {
    if (sections.empty() || sections.back() != section) sections.emplace_back(section);
    if (given.section != section) return;
    keys.emplace_back(key);
    if (given.key != key) return;
    found = true;
    const std::string problem =
        read_key(given.place + ": " + given.name(), value_for(given, field), field);
    if (!problem.empty()) problems.push_back({problem, given.name() + ": " + help});
  });
  const std::vector<std::string> fields = model_fields();
  if (given.section == "model") {
    if (!found && std::ranges::find(fields, given.key) != fields.end()) {
      found = true;
      ModelConfig any;
      describe(any, [&](const char* name, auto& field, const char* help) {
        if (given.key != name) return;
        const std::string problem = read_key(given.place + ": " + given.name(), given.value, field);
        if (!problem.empty()) problems.push_back({problem, given.name() + ": " + help});
      });
      std::erase_if(recipe.model.overrides, [&](const auto& o) { return o.first == given.key; });
      recipe.model.overrides.emplace_back(given.key, given.value.dump());
    }
    keys.insert(keys.end(), fields.begin(), fields.end());
  }
  if (found) {
    recipe.origins[given.name()] = given.origin;
  } else if (keys.empty()) {
    problems.push_back(
        {given.place + ": unknown section " + given.section + suggestion(given.section, sections),
         "the sections are " + joined(sections)});
  } else {
    problems.push_back(
        {given.place + ": unknown key " + given.name() + suggestion(given.key, keys), kKeysHint});
  }
}

}  // namespace

void read_recipe_text(const std::string& text, const std::string& where, Recipe& recipe,
                      std::vector<RecipeProblem>& problems) {
  for (const Given& given : given_by_file(text, where, problems)) apply(given, recipe, problems);
}

void read_recipe_sets(const std::vector<std::string>& sets, Recipe& recipe,
                      std::vector<RecipeProblem>& problems) {
  for (const Given& given : given_by_sets(sets, problems)) apply(given, recipe, problems);
}

}  // namespace heed
