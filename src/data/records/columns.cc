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
    throw Error(ErrorCode::invalid_argument, "a column must be numbered from 1, got " + column,
                "data.first_column = \"1\" is the first column; with a header, use its names");
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

std::string missing_field(const json& object, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return "there is no field \"" + name + "\", the object has " +
         (names.empty() ? "none" : excerpt(joined(names)));
}

// Each returns why the field cannot be read, or an empty text.
std::string read_text(const json& object, const std::string& name, std::string& out) {
  if (name.empty()) return {};
  const json* value = look_up(object, name);
  if (value == nullptr) return missing_field(object, name);
  auto text = as_text(value);
  if (!text) {
    return "the field \"" + name + "\" must be a string or a number, got " + value->type_name();
  }
  out = std::move(*text);
  return {};
}

std::string read_texts(const json& object, const std::string& name, std::vector<std::string>& out) {
  const json* list = look_up(object, name);
  if (list == nullptr) return missing_field(object, name);
  const std::string problem = "the field \"" + name + "\" must be a list of strings";
  if (!list->is_array()) return problem + ", got " + list->type_name();
  out.clear();
  for (const json& value : *list) {
    auto text = as_text(&value);
    if (!text) return problem;
    out.push_back(std::move(*text));
  }
  return {};
}

}  // namespace

std::string excerpt(std::string_view text) {
  constexpr size_t kMost = 40;
  size_t end = std::min(text.size(), kMost);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  std::string start(text.substr(0, end));
  for (char& c : start) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return end < text.size() ? start + "…" : start;
}

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

CsvEnd split_csv(std::string_view line, std::vector<std::string>& columns) {
  columns.assign(1, "");
  bool quoted = false, at_start = true, closed = false, stray = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        columns.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        columns.back() += line[++i];
      } else {
        quoted = false;
        closed = true;
      }
    } else if (c == ',') {
      columns.emplace_back();
      at_start = true;
      closed = false;
      continue;
    } else if (c == '"' && at_start) {
      quoted = true;
    } else {
      stray = stray || (closed && c != ' ' && c != '\r');
      columns.back() += c;
    }
    at_start = false;
  }
  if (quoted) return CsvEnd::open_quote;
  return stray ? CsvEnd::stray_text : CsvEnd::complete;
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

std::string JsonColumns::read(std::string_view line, Values& values) const {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return "not valid JSON";
  if (!object.is_object()) {
    return std::string("must be a JSON object, got ") + object.type_name();
  }
  if (objective_ == Objective::tagging) {
    std::string problem = read_texts(object, first_, values.words);
    if (problem.empty()) problem = read_texts(object, label_, values.tags);
    if (!problem.empty() || values.words.size() == values.tags.size()) return problem;
    return "\"" + first_ + "\" has " + std::to_string(values.words.size()) + " words, \"" + label_ +
           "\" " + std::to_string(values.tags.size()) + " tags";
  }
  std::string problem = read_text(object, first_, values.first);
  if (problem.empty()) problem = read_text(object, second_, values.second);
  if (problem.empty()) problem = read_text(object, label_, values.label);
  return problem;
}

}  // namespace heed
