#include "data/records/columns.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "heed/error.h"

namespace heed {

namespace {

using nlohmann::json;

bool wants_second(const CorpusOptions& corpus, Objective objective) {
  return objective == Objective::translation || objective == Objective::parsing ||
         !corpus.second_column.empty();
}

bool wants_label(Objective objective) {
  return objective == Objective::classification || objective == Objective::regression;
}

std::optional<int64_t> as_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

size_t column_index(const std::string& column,
                    const std::optional<std::vector<std::string>>& header) {
  if (const auto number = as_number(column)) {
    if (*number >= 1) return static_cast<size_t>(*number - 1);
    throw Error(ErrorCode::invalid_argument, "columns are numbered from 1, got " + column);
  }
  if (header) {
    const auto found = std::find(header->begin(), header->end(), column);
    if (found != header->end()) return static_cast<size_t>(found - header->begin());
    throw Error(ErrorCode::invalid_argument, "the header must have the column \"" + column + "\"",
                "its columns: " + joined(*header));
  }
  return 0;
}

const json* look_up(const json& object, std::string_view name) {
  const json* place = &object;
  if (const auto whole = place->find(name); whole != place->end()) return &*whole;
  for (;;) {
    const size_t dot = name.find('.');
    if (!place->is_object()) return nullptr;
    const auto found = place->find(name.substr(0, dot));
    if (found == place->end()) return nullptr;
    place = &*found;
    if (dot == std::string_view::npos) return place;
    name.remove_prefix(dot + 1);
  }
}

std::optional<std::string> as_text(const json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number() || value->is_boolean()) return value->dump();
  return std::nullopt;
}

bool read_text(const json& object, const std::string& name, std::string& out) {
  if (name.empty()) return true;
  auto text = as_text(look_up(object, name));
  if (!text) return false;
  out = std::move(*text);
  return true;
}

bool read_texts(const json& object, const std::string& name, std::vector<std::string>& out) {
  const json* list = look_up(object, name);
  if (list == nullptr || !list->is_array()) return false;
  out.clear();
  for (const json& value : *list) {
    auto text = as_text(&value);
    if (!text) return false;
    out.push_back(std::move(*text));
  }
  return true;
}

}  // namespace

void split_tabs(std::string_view line, std::vector<std::string>& columns) {
  columns.clear();
  for (;;) {
    const size_t tab = line.find('\t');
    columns.emplace_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return;
    line.remove_prefix(tab + 1);
  }
}

void split_spaces(std::string_view line, std::vector<std::string>& columns) {
  columns.clear();
  for (;;) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return;
    line.remove_prefix(begin);
    const size_t end = line.find_first_of(" \t");
    columns.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end);
  }
}

bool split_csv(std::string_view line, std::vector<std::string>& columns) {
  columns.assign(1, "");
  bool quoted = false, at_start = true;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        columns.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        columns.back() += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == ',') {
      columns.emplace_back();
      at_start = true;
      continue;
    } else if (c == '"' && at_start) {
      quoted = true;
    } else {
      columns.back() += c;
    }
    at_start = false;
  }
  return !quoted;
}

size_t TableColumns::needed() const {
  return std::max({first, second.value_or(0), label.value_or(0)}) + 1;
}

bool names_columns(const CorpusOptions& corpus) {
  for (const auto* column : {&corpus.first_column, &corpus.second_column, &corpus.label_column}) {
    if (!column->empty() && !as_number(*column)) return true;
  }
  return false;
}

TableColumns choose_columns(const CorpusOptions& corpus, Objective objective,
                            const std::optional<std::vector<std::string>>& header) {
  const auto choose = [&](const std::string& column, size_t otherwise) {
    return column.empty() ? otherwise : column_index(column, header);
  };
  TableColumns columns;
  columns.has_header = names_columns(corpus);
  columns.first = choose(corpus.first_column, 0);
  if (wants_second(corpus, objective)) columns.second = choose(corpus.second_column, 1);
  if (wants_label(objective)) {
    columns.label = choose(corpus.label_column, columns.second ? 2 : 1);
  }
  return columns;
}

JsonColumns::JsonColumns(const CorpusOptions& corpus, Objective objective)
    : objective_(objective), first_(corpus.first_column) {
  const bool pair = objective == Objective::translation || objective == Objective::parsing;
  if (objective == Objective::tagging) {
    if (first_.empty()) first_ = "words";
    label_ = corpus.label_column.empty() ? "tags" : corpus.label_column;
    return;
  }
  if (first_.empty()) first_ = pair ? "source" : "text";
  if (wants_second(corpus, objective)) {
    second_ = corpus.second_column.empty() ? "target" : corpus.second_column;
  }
  if (wants_label(objective)) {
    label_ = corpus.label_column.empty() ? "label" : corpus.label_column;
  }
}

bool JsonColumns::read(std::string_view line, Values& values) const {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return false;
  if (objective_ == Objective::tagging) {
    return read_texts(object, first_, values.words) && read_texts(object, label_, values.tags) &&
           values.words.size() == values.tags.size();
  }
  return read_text(object, first_, values.first) && read_text(object, second_, values.second) &&
         read_text(object, label_, values.label);
}

}  // namespace heed
