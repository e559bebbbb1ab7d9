// Reads a sweep's TOML file.
#include "train/sweep/sweep_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "base/text/number_text.h"
#include "base/text/suggest.h"
#include "heed/error.h"
#include "train/sweep/sweep_text.h"

namespace heed {
namespace {

using Change = std::pair<std::string, std::string>;  // "model.heads", "8"

// Each row is a training; a grid of a few long lists would never finish.
constexpr size_t kMostRows = 1000;

[[noreturn]] void wrong(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, where + ": " + what,
              "a sweep has recipe = \"FILE\", [set], and any of [[rows]], [[lists]] and [[grid]]");
}

// A double as TOML writes it: a whole number has a decimal.
std::string toml_number(double value) {
  const std::string number = shortest(value);
  const bool is_whole = number.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole ? number + ".0" : number;
}

// A value as TOML writes it, which is what --set takes.
std::string value_text(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return toml_number(number->get());
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

struct Variation {
  std::string key;
  const toml::node* value;
};

// The section.key entries of a table in the file's order, without `name`.
std::vector<Variation> variations(const toml::table& table, const std::string& where) {
  std::vector<Variation> list;
  for (const auto& [section, node] : table) {
    if (section.str() == "name") continue;
    const toml::table* keys = node.as_table();
    if (!keys) wrong(where, std::string(section.str()) + " must be a section.key of a recipe");
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

// The name of a row without one: its changes.
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
    // In the order of the file, of all three kinds.
    std::vector<std::pair<uint32_t, std::function<void()>>> parts;
    each_table("rows", parts, [this](const toml::table& t) { add_row(t); });
    each_table("lists", parts, [this](const toml::table& t) { add_lists(t); });
    each_table("grid", parts, [this](const toml::table& t) { add_grid(t); });
    std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.first; });
    for (const auto& [line, add] : parts) add();
    if (plan_.rows.empty()) wrong(where_, "there must be rows");
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
    if (!node->is_string()) wrong(where_, std::string(key) + " must be a string in quotes");
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
      wrong(place(table), "there must be at most " + std::to_string(kMostRows) + " rows");
    }
    for (const SweepRow& row : plan_.rows) {
      if (row.name == name || row.folder == folder_name(name)) {
        wrong(place(table), "rows must have different names, got a second '" + name + "'");
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
    if (keys.empty()) wrong(place(table), "[[lists]] must have lists");
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
    if (keys.empty()) wrong(place(table), "[[grid]] must have lists");
    std::vector<size_t> at(keys.size(), 0);
    for (bool more = true; more;) {
      std::vector<Change> changes;
      for (size_t k = 0; k < keys.size(); ++k) {
        changes.emplace_back(keys[k].key, value_text(list_of(keys[k], place(table))[at[k]]));
      }
      add(row_name(given_name(table), changes), changes, table);
      // The last key varies fastest.
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

}  // namespace

SweepPlan read_sweep_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
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

}  // namespace heed
