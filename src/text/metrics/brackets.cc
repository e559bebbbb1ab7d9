// Labelled bracketing by the rules of EVALB (Sekine and Collins).
#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "base/files/text_file.h"
#include "base/text/number_text.h"
#include "base/text/suggest.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "text/metrics/metric_text.h"
#include "text/trees/bracket_tree.h"
#include "text/trees/tree.h"

namespace heed {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

bool equivalent(const std::string& a, const std::string& b, const Pairs& pairs) {
  return a == b || std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
           return (a == pair.first && b == pair.second) || (a == pair.second && b == pair.first);
         });
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

void reinsert(const TreeQuote& quote, BracketTree& tree) {
  tree.words.insert(tree.words.begin() + quote.word, quote.term);
  for (size_t b = static_cast<size_t>(quote.bracket); b < tree.brackets.size(); ++b) {
    ++tree.brackets[b].start;
    ++tree.brackets[b].end;
  }
  for (const int b : quote.open) ++tree.brackets[static_cast<size_t>(b)].end;
}

// Restores quotes that only one side deleted, because the other tagged them differently.
void fix_quotes(BracketTree& gold, BracketTree& test, const BracketOptions& options) {
  const auto put_back = [](BracketTree& tree, size_t quote) {
    reinsert(tree.quotes[quote], tree);
    for (size_t q = quote; q < tree.quotes.size(); ++q) ++tree.quotes[q].word;
  };
  for (size_t t = 0; t < test.quotes.size(); ++t) {
    const int word = test.quotes[t].word;
    for (size_t g = 0; g < gold.quotes.size(); ++g) {
      const std::string& gold_tag = gold.quotes[g].term.tag;
      const std::string& test_tag = test.quotes[t].term.tag;
      if (gold.quotes[g].word != word || gold_tag == test_tag) continue;
      const bool gold_deletes = contains(options.delete_label, gold_tag);
      const bool test_deletes = contains(options.delete_label, test_tag);
      if (gold_deletes && !test_deletes) put_back(gold, g);
      if (test_deletes && !gold_deletes) put_back(test, t);
    }
  }
}

// NP-SBJ-1 and NP=2 are NPs. Empty brackets and those of delete_label do not count.
std::vector<TreeBracket> counted_brackets(const BracketTree& tree, const BracketOptions& options) {
  std::vector<TreeBracket> kept;
  for (TreeBracket bracket : tree.brackets) {
    if (bracket.start == bracket.end) continue;
    bracket.label.resize(std::min(bracket.label.find_first_of("-="), bracket.label.size()));
    const bool deleted = std::any_of(options.delete_label.begin(), options.delete_label.end(),
                                     [&](const std::string& label) {
                                       return equivalent(bracket.label, label, options.eq_label);
                                     });
    if (!deleted) kept.push_back(std::move(bracket));
  }
  return kept;
}

// Matches each bracket of `gold` with the first equivalent unmatched one of `test`. EVALB scans all
// brackets, which is quadratic for deep trees; here they are looked up by span and label.
int count_matches(const std::vector<TreeBracket>& gold, const std::vector<TreeBracket>& test,
                  const BracketOptions& options) {
  using Key = std::tuple<int, int, std::string_view>;
  const auto key = [&options](const TreeBracket& bracket, std::string_view label) {
    return Key(bracket.start, bracket.end, options.labeled ? label : std::string_view());
  };
  std::map<Key, std::deque<size_t>> free;
  for (size_t t = 0; t < test.size(); ++t) free[key(test[t], test[t].label)].push_back(t);

  int matches = 0;
  for (const TreeBracket& bracket : gold) {
    std::deque<size_t>* first = nullptr;
    const auto consider = [&](std::string_view label) {
      const auto found = free.find(key(bracket, label));
      if (found == free.end() || found->second.empty()) return;
      if (!first || found->second.front() < first->front()) first = &found->second;
    };
    consider(bracket.label);
    for (const auto& [a, b] : options.eq_label) {
      if (bracket.label == a) consider(b);
      if (bracket.label == b) consider(a);
    }
    if (!first) continue;
    first->pop_front();
    ++matches;
  }
  return matches;
}

// Brackets of `test` that cross one of `gold`. Brackets with the same span cross together.
int count_crossing(const std::vector<TreeBracket>& gold, const std::vector<TreeBracket>& test) {
  using Span = std::pair<int, int>;
  std::set<Span> gold_spans;
  std::map<Span, int> test_spans;
  for (const TreeBracket& g : gold) gold_spans.emplace(g.start, g.end);
  for (const TreeBracket& t : test) ++test_spans[{t.start, t.end}];
  int crossing = 0;
  for (const auto& [t, count] : test_spans) {
    const bool crosses = std::any_of(gold_spans.begin(), gold_spans.end(), [&t = t](const Span& g) {
      return (g.first < t.first && g.second > t.first && g.second < t.second) ||
             (g.first > t.first && g.first < t.second && g.second > t.second);
    });
    if (crosses) crossing += count;
  }
  return crossing;
}

// Why the two trees cannot be compared; empty if they can.
std::string difference(const BracketTree& gold, const BracketTree& test,
                       const BracketOptions& options) {
  if (gold.words.size() != test.words.size()) {
    return "lengths differ (" + std::to_string(gold.words.size()) + "|" +
           std::to_string(test.words.size()) + ")";
  }
  for (size_t i = 0; i < gold.words.size(); ++i) {
    const std::string &a = gold.words[i].word, &b = test.words[i].word;
    if (!equivalent(a, b, options.eq_word)) return "words differ (" + a + "|" + b + ")";
  }
  return "";
}

BracketSentence compare(const std::string& gold_line, const std::string& test_line,
                        const BracketOptions& options) {
  BracketTree gold = parse_bracket_tree(gold_line, options);
  BracketTree test = parse_bracket_tree(test_line, options);
  BracketSentence result{.length = gold.length};
  const auto fail = [&result](std::string problem) {
    result.status = BracketStatus::error;
    result.problem = std::move(problem);
    return result;
  };
  if (!gold.problem.empty()) return fail("gold: " + gold.problem);
  if (!test.problem.empty()) return fail("test: " + test.problem);
  if (test.words.empty()) {
    result.status = BracketStatus::skip;
    return result;
  }
  if (gold.words.size() != test.words.size()) fix_quotes(gold, test, options);
  if (std::string problem = difference(gold, test, options); !problem.empty()) {
    return fail(std::move(problem));
  }

  const std::vector<TreeBracket> gold_brackets = counted_brackets(gold, options);
  const std::vector<TreeBracket> test_brackets = counted_brackets(test, options);
  result.matched = count_matches(gold_brackets, test_brackets, options);
  result.gold = static_cast<int>(gold_brackets.size());
  result.test = static_cast<int>(test_brackets.size());
  result.crossing = count_crossing(gold_brackets, test_brackets);
  result.words = static_cast<int>(gold.words.size());
  for (size_t i = 0; i < gold.words.size(); ++i) {
    result.correct_tags += equivalent(gold.words[i].tag, test.words[i].tag, options.eq_label);
  }
  return result;
}

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Of the sentences up to `max_length`; negative: of all.
BracketSummary summarize(const std::vector<BracketSentence>& sentences, int max_length) {
  BracketSummary sum;
  int complete = 0, no_crossing = 0, two_or_less = 0;
  for (const BracketSentence& sentence : sentences) {
    if (max_length >= 0 && sentence.length > max_length) continue;
    ++sum.sentences;
    sum.errors += sentence.status == BracketStatus::error;
    sum.skipped += sentence.status == BracketStatus::skip;
    if (sentence.status != BracketStatus::ok) continue;
    ++sum.valid;
    sum.matched += sentence.matched;
    sum.gold += sentence.gold;
    sum.test += sentence.test;
    sum.crossing += sentence.crossing;
    sum.words += sentence.words;
    sum.correct_tags += sentence.correct_tags;
    complete += sentence.matched == sentence.gold && sentence.gold == sentence.test;
    no_crossing += sentence.crossing == 0;
    two_or_less += sentence.crossing <= 2;
  }
  sum.recall = percent(sum.matched, sum.gold);
  sum.precision = percent(sum.matched, sum.test);
  const double both = sum.recall + sum.precision;
  sum.f1 = both == 0 ? 0 : 2 * sum.precision * sum.recall / both;
  sum.complete_match = percent(complete, sum.valid);
  sum.average_crossing = percent(sum.crossing, sum.valid) / 100;
  sum.no_crossing = percent(no_crossing, sum.valid);
  sum.two_or_less_crossing = percent(two_or_less, sum.valid);
  sum.tagging_accuracy = percent(sum.correct_tags, sum.words);
  return sum;
}

std::string padded(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}
std::string whole(int64_t value, size_t width) { return padded(std::to_string(value), width); }
std::string ratio(double value) { return padded(fixed(value, 2), 6); }

constexpr const char* kRule =
    "============================================================================\n";

std::string row_text(size_t number, const BracketSentence& s) {
  return whole(static_cast<int64_t>(number), 4) + "  " + whole(s.length, 3) + "    " +
         std::to_string(static_cast<int>(s.status)) + "  " + ratio(percent(s.matched, s.gold)) +
         " " + ratio(percent(s.matched, s.test)) + "   " + whole(s.matched, 3) + "    " +
         whole(s.gold, 3) + "  " + whole(s.test, 3) + "    " + whole(s.crossing, 3) + "   " +
         whole(s.words, 4) + "  " + whole(s.correct_tags, 4) + "   " +
         ratio(percent(s.correct_tags, s.words)) + "\n";
}

std::string total_text(const BracketSummary& sum) {
  std::string text;
  if (sum.gold > 0 && sum.test > 0) {
    text = std::string(16, ' ') + ratio(sum.recall) + " " + ratio(sum.precision) + " " +
           whole(sum.matched, 6) + " " + whole(sum.gold, 5) + " " + whole(sum.test, 5) + "  " +
           whole(sum.crossing, 5);
  }
  return text + "  " + whole(sum.words, 5) + " " + whole(sum.correct_tags, 5) + "   " +
         ratio(sum.tagging_accuracy) + "\n";
}

std::string summary_text(const std::string& title, const BracketSummary& sum) {
  return "\n-- " + title + " --\n" + "Number of sentence        = " + whole(sum.sentences, 6) +
         "\n" + "Number of Error sentence  = " + whole(sum.errors, 6) + "\n" +
         "Number of Skip  sentence  = " + whole(sum.skipped, 6) + "\n" +
         "Number of Valid sentence  = " + whole(sum.valid, 6) + "\n" +
         "Bracketing Recall         = " + ratio(sum.recall) + "\n" +
         "Bracketing Precision      = " + ratio(sum.precision) + "\n" +
         "Bracketing FMeasure       = " + ratio(sum.f1) + "\n" +
         "Complete match            = " + ratio(sum.complete_match) + "\n" +
         "Average crossing          = " + ratio(sum.average_crossing) + "\n" +
         "No crossing               = " + ratio(sum.no_crossing) + "\n" +
         "2 or less crossing        = " + ratio(sum.two_or_less_crossing) + "\n" +
         "Tagging accuracy          = " + ratio(sum.tagging_accuracy) + "\n";
}

// One line of a parameter file: a key, and one or two values.
class ParameterLine {
 public:
  ParameterLine(std::string where, std::string_view line)
      : where_(std::move(where)), words_(split_words(line)) {}

  void apply(BracketOptions& options) const {
    const std::string_view key = words_.front();
    if (key == "DEBUG") {  // EVALB's verbosity: ignored
      number();
    } else if (key == "MAX_ERROR") {
      options.max_error = number();
    } else if (key == "CUTOFF_LEN") {
      options.cutoff_len = number();
    } else if (key == "LABELED") {
      options.labeled = number() != 0;
    } else if (key == "DELETE_LABEL") {
      options.delete_label.push_back(value(1, 1));
    } else if (key == "DELETE_LABEL_FOR_LENGTH") {
      options.delete_label_for_length.push_back(value(1, 1));
    } else if (key == "QUOTE_LABEL") {
      options.quote_label.push_back(value(1, 1));
    } else if (key == "EQ_LABEL") {
      options.eq_label.emplace_back(value(1, 2), value(2, 2));
    } else if (key == "EQ_WORD") {
      options.eq_word.emplace_back(value(1, 2), value(2, 2));
    } else {
      const auto meant =
          nearest(key, {"DEBUG", "MAX_ERROR", "CUTOFF_LEN", "LABELED", "DELETE_LABEL",
                        "DELETE_LABEL_FOR_LENGTH", "QUOTE_LABEL", "EQ_LABEL", "EQ_WORD"});
      throw Error(
          ErrorCode::corrupt_file, where_ + ": unknown parameter '" + std::string(key) + "'",
          meant ? "did you mean '" + *meant + "'?" : "EVALB's parameter files have nine keys");
    }
  }

 private:
  // Value number `i` of the `count` that the key has.
  std::string value(size_t i, size_t count) const {
    if (words_.size() != count + 1) {
      throw Error(ErrorCode::corrupt_file, where_ + ": " + std::string(words_.front()) +
                                               ": must have " + std::to_string(count) +
                                               (count == 1 ? " value" : " values") + ", got " +
                                               std::to_string(words_.size() - 1));
    }
    return std::string(words_[i]);
  }

  int number() const {
    const std::string text = value(1, 1);
    int result = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), result);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size() || result < 0) {
      throw Error(ErrorCode::corrupt_file, where_ + ": " + std::string(words_.front()) +
                                               ": must be a whole number, got '" + text + "'");
    }
    return result;
  }

  std::string where_;
  std::vector<std::string_view> words_;
};

}  // namespace

BracketOptions read_bracket_options(const std::string& path) {
  BracketOptions options;
  LineReader reader(path);
  std::string line;
  while (reader.next(line)) {
    const bool is_comment = line.starts_with('#') || strip(line).empty();
    if (!is_comment) ParameterLine(reader.where(), line).apply(options);
  }
  return options;
}

namespace {

// Invalid trees are kept, for compare() to report. A tree without words counts as missing.
std::string cleaned(const std::string& text) {
  try {
    const std::optional<Tree> tree = clean_tree(parse_tree(text));
    return tree ? bracket_tree(*tree) : "";
  } catch (const Error&) {
    return text;
  }
}

}  // namespace

BracketScore brackets(const std::vector<std::string>& gold, const std::vector<std::string>& test,
                      const BracketOptions& options) {
  if (gold.size() != test.size()) {
    throw Error(ErrorCode::invalid_argument,
                "brackets: must have as many test trees as gold trees, got " +
                    std::to_string(test.size()) + " and " + std::to_string(gold.size()),
                "one tree per line; an empty line is a missing tree");
  }
  if (gold.empty())
    throw Error(ErrorCode::invalid_argument, "brackets: must have trees to compare, got none");

  BracketScore result{.cutoff_len = options.cutoff_len};
  int errors = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    const BracketSentence& sentence = result.sentences.emplace_back(
        options.clean ? compare(cleaned(gold[i]), cleaned(test[i]), options)
                      : compare(gold[i], test[i], options));
    if (sentence.status != BracketStatus::error) continue;
    // As EVALB, which stops at the second error after max_error.
    if (errors++ > options.max_error) {
      throw Error(ErrorCode::invalid_argument,
                  "brackets: more than " + std::to_string(options.max_error + 1) +
                      " trees cannot be compared; the last is number " + std::to_string(i + 1) +
                      ": " + sentence.problem,
                  "check that both files have the same words, or raise MAX_ERROR");
    }
  }
  result.all = summarize(result.sentences, -1);
  result.up_to_cutoff = summarize(result.sentences, options.cutoff_len);
  return result;
}

std::string BracketScore::text() const {
  std::string lines =
      "  Sent.                        Matched  Bracket   Cross        Correct Tag\n"
      " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy\n";
  lines += kRule;
  for (size_t i = 0; i < sentences.size(); ++i) lines += row_text(i + 1, sentences[i]);
  return lines + kRule + total_text(all) + "=== Summary ===\n" + summary_text("All", all) +
         summary_text("len<=" + std::to_string(cutoff_len), up_to_cutoff);
}

}  // namespace heed
