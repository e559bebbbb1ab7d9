#include "text/trees/tree.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "heed/error.h"

namespace heed {

namespace {

constexpr std::string_view kWord = "XX";  // any word in the linear form
constexpr std::string_view kTop = "S";    // the label of an added root

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_bracket(char c) { return c == '(' || c == ')'; }

// Reads "(", ")" and the words between.
class TreeScanner {
 public:
  explicit TreeScanner(std::string_view text) : rest_(text) {}

  // '(' or ')', 'w' for a word (then word() has it), or 0 at the end.
  char next() {
    skip_spaces();
    if (rest_.empty()) return 0;
    const char first = rest_.front();
    if (is_bracket(first)) {
      rest_.remove_prefix(1);
      return first;
    }
    word_ = word_here();
    return 'w';
  }
  // The label after the bracket just read; empty when a bracket or the end follows.
  std::string_view label() {
    skip_spaces();
    return rest_.empty() || is_bracket(rest_.front()) ? std::string_view{} : word_here();
  }
  std::string_view word() const { return word_; }
  // The same without skipping spaces: ")" and ")NP" differ.
  std::string_view closing_label() {
    const bool has = !rest_.empty() && !is_space(rest_.front()) && !is_bracket(rest_.front());
    return has ? word_here() : std::string_view{};
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  std::string_view word_here() {
    size_t end = 0;
    while (end < rest_.size() && !is_space(rest_[end]) && !is_bracket(rest_[end])) ++end;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  std::string_view rest_, word_;
};

[[noreturn]] void malformed(const std::string& why) {
  throw Error(ErrorCode::corrupt_file, "not a bracketed tree: " + why,
              "trees look like (S (NP (NN word)) …)");
}

// Function tags and indices: NP-SBJ-1, ADVP=2, NP|QP; -LRB- and the like are whole names.
std::string_view plain_label(std::string_view label) {
  if (label.starts_with('-')) return label;
  return label.substr(0, label.find_first_of("-=|"));
}

bool is_top_label(std::string_view label) {
  return label.empty() || label == "TOP" || label == "ROOT";
}

std::optional<Tree> without_traces(const Tree& tree) {
  if (tree.is_leaf()) {
    if (tree.label == "-NONE-" || tree.word.empty()) return std::nullopt;
    return tree;
  }
  Tree kept{.label = std::string(plain_label(tree.label))};
  for (const Tree& child : tree.children) {
    if (auto clean = without_traces(child)) kept.children.push_back(std::move(*clean));
  }
  if (kept.children.empty()) return std::nullopt;
  return kept;
}

void append_brackets(const Tree& tree, std::string& text) {
  text += '(';
  text += tree.label;
  if (tree.is_leaf()) {
    text += ' ';
    text += tree.word;
  }
  for (const Tree& child : tree.children) {
    text += ' ';
    append_brackets(child, text);
  }
  text += ')';
}

void append_linear(const Tree& tree, LinearWords words, std::string& text) {
  if (!text.empty()) text += ' ';
  if (tree.is_leaf()) {
    text += words == LinearWords::tags    ? std::string_view(tree.label)
            : words == LinearWords::words ? std::string_view(tree.word)
                                          : kWord;
    return;
  }
  text += '(';
  text += tree.label;
  for (const Tree& child : tree.children) append_linear(child, words, text);
  text += " )";
  text += tree.label;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::vector<std::string_view> signs_of(std::string_view linear) {
  std::vector<std::string_view> symbols;
  TreeScanner scanner(linear);
  while (const char token = scanner.next()) {
    if (token == '(') {
      scanner.label();
    } else if (token == ')') {
      scanner.closing_label();
    } else {
      symbols.push_back(scanner.word());
    }
  }
  return symbols;
}

// The word that each symbol denotes, in order; words.size() for a surplus symbol. Found by the
// minimum edit distance: a model that copies words may skip or repeat some, and the rest still
// aligns. Symbols that equal no word are matched by position.
std::vector<size_t> align(const std::vector<std::string_view>& symbols,
                          std::span<const std::string> words) {
  constexpr size_t kMostCells = 1 << 22;
  const size_t m = symbols.size(), n = words.size(), width = n + 1;
  std::vector<size_t> word_of(m, n);
  if ((m + 1) * width > kMostCells) {
    for (size_t i = 0; i < std::min(m, n); ++i) word_of[i] = i;
    return word_of;
  }
  std::vector<uint32_t> changes((m + 1) * width);  // from symbol i and word j on
  for (size_t i = m + 1; i-- > 0;) {
    for (size_t j = width; j-- > 0;) {
      uint32_t& here = changes[i * width + j];
      if (i == m || j == n) {
        here = static_cast<uint32_t>(m - i + n - j);
        continue;
      }
      const uint32_t both = changes[(i + 1) * width + j + 1] + (symbols[i] == words[j] ? 0 : 1);
      const uint32_t one = std::min(changes[(i + 1) * width + j], changes[i * width + j + 1]) + 1;
      here = std::min(both, one);
    }
  }
  for (size_t i = 0, j = 0; i < m && j < n;) {
    const uint32_t here = changes[i * width + j];
    if (here == changes[(i + 1) * width + j + 1] + (symbols[i] == words[j] ? 0 : 1)) {
      word_of[i++] = j++;
    } else if (here == changes[(i + 1) * width + j] + 1) {
      ++i;
    } else {
      ++j;
    }
  }
  return word_of;
}

// Whether the symbols are the words themselves and not tags: for a model that copies, most are equal.
bool are_words(const std::vector<std::string_view>& symbols, const std::vector<size_t>& word_of,
               std::span<const std::string> words) {
  int64_t equal = 0, letters = 0;  // punctuation is its own tag
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (word_of[i] == words.size() || !is_letter(words[word_of[i]].front())) continue;
    equal += symbols[i] == words[word_of[i]];
    ++letters;
  }
  return equal > 0 && 3 * equal >= letters;
}

template <class Visit>
void visit_leaves(const Tree& tree, const Visit& visit) {
  if (tree.is_leaf()) return visit(tree);
  for (const Tree& child : tree.children) visit_leaves(child, visit);
}

}  // namespace

Tree parse_tree(std::string_view text) {
  TreeScanner scanner(text);
  std::vector<Tree> open;  // the path from the root
  std::optional<Tree> done;
  while (const char token = scanner.next()) {
    if (done) malformed("text after the last bracket");
    if (token == '(') {
      if (open.size() >= static_cast<size_t>(kMaxTreeDepth)) malformed("nested too deeply");
      open.push_back({.label = std::string(scanner.label())});
    } else if (open.empty()) {
      malformed(token == ')' ? "a bracket closes that was not open" : "a word outside brackets");
    } else if (token == 'w') {
      Tree& leaf = open.back();
      if (!leaf.word.empty() || !leaf.children.empty()) malformed("a word among phrases");
      leaf.word = scanner.word();
    } else {
      Tree closed = std::move(open.back());
      open.pop_back();
      if (!closed.word.empty() && !closed.children.empty()) malformed("a word among phrases");
      if (closed.word.empty() && closed.children.empty()) malformed("empty brackets");
      if (open.empty()) {
        done = std::move(closed);
      } else {
        open.back().children.push_back(std::move(closed));
      }
    }
  }
  if (!open.empty()) malformed("a bracket is never closed");
  if (!done) malformed("no brackets");
  return std::move(*done);
}

bool next_tree_text(LineReader& reader, std::string& text) {
  text.clear();
  std::string line;
  int64_t depth = 0;
  while (reader.next(line)) {
    if (text.empty() && std::all_of(line.begin(), line.end(), is_space)) continue;
    depth += std::count(line.begin(), line.end(), '(') - std::count(line.begin(), line.end(), ')');
    if (!text.empty()) text += '\n';
    text += line;
    if (depth <= 0) return true;
  }
  return !text.empty();
}

std::optional<Tree> clean_tree(const Tree& tree) {
  auto clean = without_traces(tree);
  while (clean && is_top_label(clean->label) && clean->children.size() == 1 &&
         !clean->children.front().is_leaf()) {
    Tree only = std::move(clean->children.front());
    clean = std::move(only);
  }
  if (clean && clean->label.empty()) clean->label = std::string(kTop);
  return clean;
}

std::string bracket_tree(const Tree& tree) {
  std::string text;
  append_brackets(tree, text);
  return text;
}

std::string linear_tree(const Tree& tree, LinearWords words) {
  std::string text;
  append_linear(tree, words, text);
  return text;
}

std::vector<std::string> words_of(const Tree& tree) {
  std::vector<std::string> words;
  visit_leaves(tree, [&](const Tree& leaf) { words.push_back(leaf.word); });
  return words;
}

std::vector<std::string> tags_of(const Tree& tree) {
  std::vector<std::string> tags;
  visit_leaves(tree, [&](const Tree& leaf) { tags.push_back(leaf.label); });
  return tags;
}

Tree tree_from_linear(std::string_view linear, std::span<const std::string> words) {
  std::vector<Tree> open{{.label = ""}};  // the first one holds the roots
  size_t used = 0;
  const auto add_word = [&](Tree& phrase, std::string_view tag) {
    phrase.children.push_back({.label = std::string(tag), .word = words[used]});
    ++used;
  };
  const auto close = [&] {
    Tree closed = std::move(open.back());
    open.pop_back();
    if (!closed.children.empty()) open.back().children.push_back(std::move(closed));
  };

  const std::vector<std::string_view> symbols = signs_of(linear);
  const std::vector<size_t> word_of = align(symbols, words);
  const bool copies = are_words(symbols, word_of, words);
  size_t symbol = 0;
  TreeScanner scanner(linear);
  while (const char token = scanner.next()) {
    if (token == '(') {
      const std::string_view label = scanner.label();
      if (!label.empty() && open.size() < static_cast<size_t>(kMaxTreeDepth)) {
        open.push_back({.label = std::string(label)});
      }
    } else if (token == ')') {
      const std::string_view label = scanner.closing_label();
      // The innermost open phrase with that label; without a label, the innermost phrase.
      size_t match = open.size() - 1;
      while (match > 0 && !label.empty() && open[match].label != label) --match;
      while (match > 0 && open.size() > match) close();
    } else if (const size_t word = word_of[symbol++]; word < words.size()) {
      while (used < word) add_word(open.back(), kWord);  // skipped words before it
      add_word(open.back(), copies ? kWord : scanner.word());
    }
  }
  // A skipped final word is usually the full stop, which belongs to the root.
  if (open.size() == 1 && open[0].children.size() == 1 && !open[0].children[0].is_leaf()) {
    while (used < words.size()) add_word(open[0].children[0], kWord);
  }
  while (used < words.size()) add_word(open.back(), kWord);
  while (open.size() > 1) close();

  Tree top = std::move(open.front());
  if (top.children.size() == 1 && !top.children.front().is_leaf()) {
    Tree only = std::move(top.children.front());
    return only;
  }
  top.label = std::string(kTop);
  return top;
}

}  // namespace heed
