// Spans by the rules of conlleval (Tjong Kim Sang, CoNLL-2000): a span begins and ends where the
// prefix or the type changes, also for tags that violate the scheme.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "base/text/number_text.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "text/metrics/f1.h"
#include "text/metrics/metric_text.h"

namespace heed {
namespace {

struct Tag {
  char prefix = 'O';  // B I E S O; others have no special meaning
  std::string_view type{};
};

Tag parse_tag(std::string_view text) {
  const size_t dash = text.find('-');  // the first: types may have dashes
  const std::string_view prefix = text.substr(0, dash);
  Tag tag{.prefix = prefix.size() == 1 ? prefix[0] : '?',
          .type = dash == std::string_view::npos ? std::string_view() : text.substr(dash + 1)};
  if (tag.prefix == 'L') tag.prefix = 'E';  // BILOU's names
  if (tag.prefix == 'U') tag.prefix = 'S';
  return tag;
}

bool is_outside(const Tag& tag) { return tag.prefix == 'O' || tag.prefix == '.'; }

// conlleval's openings and closings of length 1
bool is_bracket(const Tag& tag) { return tag.prefix == '[' || tag.prefix == ']'; }

bool ends_between(const Tag& before, const Tag& after) {
  if (is_bracket(before) || before.prefix == 'E' || before.prefix == 'S') return true;
  const bool inside = before.prefix == 'B' || before.prefix == 'I';
  const bool stops = after.prefix == 'B' || after.prefix == 'S' || after.prefix == 'O';
  if (inside && stops) return true;
  return !is_outside(before) && before.type != after.type;
}

bool begins_between(const Tag& before, const Tag& after) {
  if (is_bracket(after) || after.prefix == 'B' || after.prefix == 'S') return true;
  const bool was_closed = before.prefix == 'E' || before.prefix == 'S' || before.prefix == 'O';
  const bool continues = after.prefix == 'E' || after.prefix == 'I';
  if (was_closed && continues) return true;
  return !is_outside(after) && before.type != after.type;
}

using Span = std::tuple<size_t, size_t, std::string_view>;  // begin, end, type

std::vector<Span> find_spans(const std::vector<std::string>& tags) {
  std::vector<Span> spans;
  Tag before;
  bool open = false;
  size_t begin = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const Tag tag = i < tags.size() ? parse_tag(tags[i]) : Tag();  // O after the last word
    if (open && ends_between(before, tag)) {
      spans.emplace_back(begin, i, before.type);
      open = false;
    }
    if (begins_between(before, tag)) {
      open = true;
      begin = i;
    }
    before = tag;
  }
  return spans;
}

void check_sentences(const TagSentences& gold, const TagSentences& predicted) {
  if (gold.size() != predicted.size()) {
    throw Error(ErrorCode::invalid_argument,
                "spans: must have as many predicted sentences as gold ones, got " +
                    std::to_string(predicted.size()) + " and " + std::to_string(gold.size()));
  }
  for (size_t i = 0; i < gold.size(); ++i) {
    if (gold[i].size() == predicted[i].size()) continue;
    throw Error(ErrorCode::invalid_argument,
                "spans: must have a predicted tag for each gold tag, sentence " +
                    std::to_string(i + 1) + " has " + std::to_string(gold[i].size()) +
                    " gold tags and " + std::to_string(predicted[i].size()) + " predicted ones",
                "both sides must have one tag per word");
  }
}

}  // namespace

SpanScore span_f1(const TagSentences& gold, const TagSentences& predicted) {
  check_sentences(gold, predicted);
  std::map<std::string, LabelScore> types;
  const auto of_type = [&types](const Span& span) -> LabelScore& {
    return types[std::string(std::get<std::string_view>(span))];
  };
  SpanScore result;
  int64_t correct_tags = 0;
  for (size_t s = 0; s < gold.size(); ++s) {
    for (size_t i = 0; i < gold[s].size(); ++i) correct_tags += gold[s][i] == predicted[s][i];
    result.tokens += static_cast<int64_t>(gold[s].size());
    const std::vector<Span> wanted = find_spans(gold[s]), found = find_spans(predicted[s]);
    for (const Span& span : wanted) ++of_type(span).gold;
    for (const Span& span : found) {
      ++of_type(span).predicted;
      if (std::binary_search(wanted.begin(), wanted.end(), span)) ++of_type(span).correct;
    }
  }
  if (result.tokens == 0)
    throw Error(ErrorCode::invalid_argument, "spans: must have tags to compare, got none");

  LabelScore all;
  for (auto& [name, type] : types) {
    type.label = name;
    fill_f1(type, 100);
    all.gold += type.gold;
    all.predicted += type.predicted;
    all.correct += type.correct;
    result.types.push_back(type);
  }
  fill_f1(all, 100);
  result.precision = all.precision;
  result.recall = all.recall;
  result.f1 = all.f1;
  result.gold = all.gold;
  result.predicted = all.predicted;
  result.correct = all.correct;
  result.accuracy = 100 * static_cast<double>(correct_tags) / static_cast<double>(result.tokens);
  return result;
}

std::string SpanScore::text() const {
  const auto padded = [](const std::string& number, size_t width) {
    return number.size() < width ? std::string(width - number.size(), ' ') + number : number;
  };
  const auto percent = [&padded](double value) { return padded(fixed(value, 2), 6); };
  const auto ratios = [&percent](double p, double r, double f) {
    return "precision: " + percent(p) + "%; recall: " + percent(r) + "%; FB1: " + percent(f);
  };
  std::string lines = "processed " + std::to_string(tokens) + " tokens with " +
                      std::to_string(gold) + " phrases; found: " + std::to_string(predicted) +
                      " phrases; correct: " + std::to_string(correct) +
                      ".\naccuracy: " + percent(accuracy) + "%; " + ratios(precision, recall, f1) +
                      "\n";
  for (const LabelScore& type : types) {
    lines += padded(type.label, 17) + ": " + ratios(type.precision, type.recall, type.f1) + "  " +
             std::to_string(type.predicted) + "\n";
  }
  return lines;
}

}  // namespace heed
