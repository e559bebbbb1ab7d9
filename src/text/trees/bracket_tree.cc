#include "text/trees/bracket_tree.h"

#include <algorithm>

namespace heed {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool ends_token(char c) { return is_blank(c) || c == '(' || c == ')'; }

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

class Parser {
 public:
  Parser(std::string_view text, const BracketOptions& options) : text_(text), options_(options) {}

  BracketTree parse() {
    while (tree_.problem.empty()) {
      skip_blanks();
      if (at_ == text_.size()) break;
      if (peek() == '(') {
        read_open();
      } else if (peek() == ')') {
        read_close();
      } else {
        fail("a word must be inside brackets");
      }
    }
    if (tree_.problem.empty() && !open_.empty()) fail("too many open brackets");
    return std::move(tree_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  std::string read_token() {
    const size_t begin = at_;
    while (at_ < text_.size() && !ends_token(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  void fail(const std::string& problem) {
    tree_.problem = problem + " at byte " + std::to_string(at_ + 1);
  }

  // "(NN dog)" is a word; any other opening bracket is a phrase.
  void read_open() {
    ++at_;
    const std::string label = read_token();
    const size_t after_label = at_;
    if (is_blank(peek())) {
      skip_blanks();
      const std::string word = read_token();
      if (peek() == ')') {
        ++at_;
        add_word({.word = word, .tag = label});
        return;
      }
      if (!word.empty()) return fail("a leaf must have a tag and a word only");
    }
    at_ = after_label;
    open_.push_back(static_cast<int>(tree_.brackets.size()));
    tree_.brackets.push_back({.label = label, .start = word_count(), .end = -1});
  }

  void read_close() {
    if (open_.empty()) return fail("too many closing brackets");
    ++at_;
    tree_.brackets[static_cast<size_t>(open_.back())].end = word_count();
    open_.pop_back();
  }

  void add_word(TreeWord word) {
    if (!contains(options_.delete_label_for_length, word.tag)) ++tree_.length;
    const bool is_quote = contains(options_.quote_label, word.tag) &&
                          (word.word == "'" || word.word == "\"" || word.word == "/");
    if (is_quote) {
      tree_.quotes.push_back({.term = word,
                              .word = word_count(),
                              .bracket = static_cast<int>(tree_.brackets.size()),
                              .open = open_});
    }
    if (!contains(options_.delete_label, word.tag)) tree_.words.push_back(std::move(word));
  }

  int word_count() const { return static_cast<int>(tree_.words.size()); }

  std::string_view text_;
  const BracketOptions& options_;
  size_t at_ = 0;
  std::vector<int> open_;  // indices of the brackets around at_
  BracketTree tree_;
};

bool is_indented(const std::string& line) { return !line.empty() && is_blank(line.front()); }

bool is_open(const std::string& line) {
  return std::count(line.begin(), line.end(), '(') > std::count(line.begin(), line.end(), ')');
}

// Whether trees are spread over lines: one is left open, and the next line is indented.
bool has_long_trees(const std::vector<std::string>& lines) {
  return std::adjacent_find(lines.begin(), lines.end(), [](const auto& line, const auto& next) {
           return is_open(line) && is_indented(next);
         }) != lines.end();
}

}  // namespace

std::vector<std::string> read_trees(const std::string& path) {
  std::vector<std::string> lines = read_lines(path);
  if (!has_long_trees(lines)) return lines;
  std::vector<std::string> trees;
  for (std::string& line : lines) {
    if (line.empty()) continue;
    if (is_indented(line) && !trees.empty()) {
      trees.back() += line;
    } else {
      trees.push_back(std::move(line));
    }
  }
  return trees;
}

BracketTree parse_bracket_tree(std::string_view text, const BracketOptions& options) {
  return Parser(text, options).parse();
}

}  // namespace heed
