#include "infer/markup/place_marks.h"

#include <algorithm>
#include <map>

#include "infer/markup/word_links.h"
#include "text/markup/placeholders.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// Deeper elements are placed in proportion: choosing ranges takes time for each level.
constexpr int kMostDepth = 32;
// What a foreign word in an element's range costs; one of its own words counts 1.
constexpr double kForeignWord = 0.5;

// An element, or a mark without a partner. Children are the marks between `open` and `close`.
struct Node {
  int64_t open = -1, close = -1;   // marks; -1: none
  bool is_element = false;         // otherwise `open` is the only mark
  int64_t first = 0, last = 0;     // source words [first, last)
  std::vector<size_t> children{};  // in order
  // Placement: target words [begin, end). An empty range is before word `begin`, behind the space
  // if is_right and else directly after the word before.
  int64_t begin = 0, end = 0;
  bool is_right = true;
};

class Placer {
 public:
  Placer(const TextBlock& block, const WordLinks& links) : block_(block), links_(links) {
    build();
    place();
  }

  // Nodes; the first is the block itself.
  const std::vector<Node>& nodes() const { return nodes_; }
  // Marks of nodes that are placed in proportion, by the node: mark and target word.
  using Proportional = std::vector<std::pair<int64_t, int64_t>>;
  const std::map<size_t, Proportional>& proportional() const { return proportional_; }

 private:
  const Mark& mark(int64_t i) const { return block_.marks[static_cast<size_t>(i)]; }

  // ---- The tree of marks ----

  void build() {
    const auto words = static_cast<int64_t>(links_.source.size());
    nodes_.push_back({.is_element = true, .first = 0, .last = words});
    std::vector<size_t> open{0};
    for (int64_t i = 0; i < static_cast<int64_t>(block_.marks.size()); ++i) {
      const Mark& m = mark(i);
      const int64_t after = links_.source_after(m.at), before = links_.source_before(m.at) + 1;
      if (m.kind == Mark::Kind::empty) {
        add_child(open.back(), {.open = i, .first = after, .last = before});
      } else if (m.kind == Mark::Kind::open) {
        const size_t node = add_child(open.back(), {.open = i, .is_element = true, .first = after});
        // Without a partner it reaches as far as the element around it.
        nodes_[node].last = nodes_[open.back()].last;
        open.push_back(node);
      } else if (m.partner >= 0) {
        // Elements inside that have no end: theirs is here.
        while (nodes_[open.back()].open != m.partner) close(open, before);
        nodes_[open.back()].close = i;
        close(open, before);
      } else {
        // Without a partner: an element from the beginning of the one around it.
        Node& around = nodes_[open.back()];
        Node node{.close = i,
                  .is_element = true,
                  .first = around.first,
                  .last = before,
                  .children = std::exchange(around.children, {})};
        add_child(open.back(), std::move(node));
      }
    }
  }

  void close(std::vector<size_t>& open, int64_t last) {
    nodes_[open.back()].last = last;
    open.pop_back();
  }

  size_t add_child(size_t parent, Node node) {
    nodes_.push_back(std::move(node));
    nodes_[parent].children.push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
  }

  // ---- Ranges ----

  void place() {
    nodes_[0].end = static_cast<int64_t>(links_.target.size());
    struct Level {
      size_t node;
      int depth;
    };
    std::vector<Level> todo{{0, 0}};
    while (!todo.empty()) {
      const auto [node, depth] = todo.back();
      todo.pop_back();
      if (nodes_[node].children.empty()) continue;
      if (depth == kMostDepth) {
        place_in_proportion(node);
        continue;
      }
      place_children(node);
      for (const size_t child : nodes_[node].children) {
        if (nodes_[child].is_element) todo.push_back({child, depth + 1});
      }
    }
  }

  // All marks inside, in their order.
  void place_in_proportion(size_t node) {
    const Node& n = nodes_[node];
    Proportional& list = proportional_[node];
    const int64_t source = std::max<int64_t>(n.last - n.first, 1), target = n.end - n.begin;
    int64_t least = n.begin;
    std::vector<size_t> todo{node};
    std::vector<int64_t> marks;
    while (!todo.empty()) {
      const size_t next = todo.back();
      todo.pop_back();
      for (const size_t child : nodes_[next].children) {
        if (nodes_[child].open >= 0) marks.push_back(nodes_[child].open);
        if (nodes_[child].close >= 0) marks.push_back(nodes_[child].close);
        todo.push_back(child);
      }
    }
    std::ranges::sort(marks);
    for (const int64_t i : marks) {
      const int64_t at = links_.source_after(mark(i).at) - n.first;
      const int64_t word = n.begin + std::clamp<int64_t>(at * target / source, 0, target);
      least = std::max(least, word);
      list.emplace_back(i, least);
    }
  }

  // The ranges of the children that have words, best first; they never overlap.
  void place_children(size_t node) {
    const Node& parent = nodes_[node];
    const std::vector<size_t>& children = parent.children;
    std::vector<size_t> elements;  // with source words, in order
    for (const size_t child : children) {
      const Node& n = nodes_[child];
      if (n.is_element && n.first < n.last) elements.push_back(child);
    }
    if (elements.size() == 1 && nodes_[elements[0]].first <= parent.first &&
        nodes_[elements[0]].last >= parent.last) {
      nodes_[elements[0]].begin = parent.begin, nodes_[elements[0]].end = parent.end;
      taken_.clear();
      if (parent.begin < parent.end) taken_[parent.begin] = parent.end;
      for (const size_t child : children) {
        if (child != elements[0]) place_without_words(child, parent);
      }
      sort_children(node);
      return;
    }
    // The target words of each element.
    std::map<size_t, std::vector<int64_t>> own;
    for (int64_t t = parent.begin; t < parent.end; ++t) {
      const int64_t s = links_.source_of[static_cast<size_t>(t)];
      const auto after = std::ranges::upper_bound(
          elements, s, {}, [&](size_t child) { return nodes_[child].first; });
      if (s < 0 || after == elements.begin()) continue;
      // Where a tag is inside of a word, the element before it may have the word too.
      const size_t child = *std::prev(after);
      if (s < nodes_[child].last) own[child].push_back(t);
    }
    std::vector<size_t> order = elements;
    const auto count = [&](size_t child) {
      const auto found = own.find(child);
      return found == own.end() ? size_t{0} : found->second.size();
    };
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return count(a) > count(b); });
    taken_.clear();
    std::vector<size_t> rest;
    for (const size_t child : order) {
      if (count(child) == 0 || !place_range(nodes_[child], own[child])) rest.push_back(child);
    }
    std::ranges::sort(rest);
    for (const size_t child : rest) place_without_words(child, parent);
    for (const size_t child : children) {
      const Node& n = nodes_[child];
      if (!n.is_element || n.first >= n.last) place_without_words(child, parent);
    }
    sort_children(node);
  }

  void sort_children(size_t node) {
    std::ranges::stable_sort(nodes_[node].children, [&](size_t a, size_t b) {
      const Node &x = nodes_[a], &y = nodes_[b];
      if (x.begin != y.begin) return x.begin < y.begin;
      // An empty one directly after the word before comes first, then those before a range.
      const bool x_left = x.begin == x.end && !x.is_right, y_left = y.begin == y.end && !y.is_right;
      if (x_left != y_left) return x_left;
      const bool x_empty = x.begin == x.end, y_empty = y.begin == y.end;
      return x_empty && !y_empty;
    });
  }

  // Whether a range that was given to a sibling is between the words a < b.
  bool is_taken_between(int64_t a, int64_t b) const {
    const auto next = taken_.upper_bound(a);
    return next != taken_.end() && next->first < b;
  }
  bool is_taken(int64_t t) const {
    const auto next = taken_.upper_bound(t);
    return next != taken_.begin() && std::prev(next)->second > t;
  }

  // The range with the largest sum: 1 for each own word, less for each other. False: none is free.
  bool place_range(Node& node, const std::vector<int64_t>& own) {
    double best = 0, sum = 0;
    int64_t best_begin = -1, best_end = -1, begin = -1, before = -1;
    for (const int64_t t : own) {
      if (is_taken(t)) continue;
      const auto gap = static_cast<double>(t - before - 1);
      if (begin < 0 || is_taken_between(before, t) || sum - kForeignWord * gap <= 0) {
        begin = t, sum = 0;
      } else {
        sum -= kForeignWord * gap;
      }
      sum += 1;
      before = t;
      if (sum > best) best = sum, best_begin = begin, best_end = t + 1;
    }
    if (best_begin < 0) return false;
    node.begin = best_begin, node.end = best_end;
    taken_[best_begin] = best_end;
    return true;
  }

  // A mark, or an element whose words have no translation: beside the words next to it.
  void place_without_words(size_t child, const Node& parent) {
    Node& node = nodes_[child];
    const bool has_words = node.is_element && node.first < node.last;
    const auto source_words = static_cast<int64_t>(links_.source.size());
    const int64_t at = mark(node.open >= 0 ? node.open : node.close).at;
    const int64_t left = links_.source_before(at), right = links_.source_after(at);
    // Directly after a word ("word<br>") it stays so, and otherwise is before the next one.
    const bool is_glued = at > 0 && left >= 0 && links_.source[static_cast<size_t>(left)].end >= at;
    const int64_t before = left < 0 ? -1 : links_.linked_before[static_cast<size_t>(left)];
    const int64_t after =
        right >= source_words ? -1 : links_.linked_after[static_cast<size_t>(right)];
    int64_t word = 0;
    const bool use_left = before >= 0 && (is_glued || after < 0);
    if (use_left) {
      word = links_.last_of[static_cast<size_t>(before)];
    } else if (after >= 0) {
      word = links_.first_of[static_cast<size_t>(after)];
    } else {
      const auto target = static_cast<int64_t>(links_.target.size());
      word = source_words == 0 ? 0 : std::min(right, source_words) * target / source_words;
    }
    // The ends of the text stay its ends.
    if (right >= source_words && parent.last >= source_words) word = parent.end;
    if (left < 0 && parent.first == 0) word = parent.begin;
    word = std::clamp(word, parent.begin, parent.end);
    node.is_right = !is_glued;
    if (has_words) {
      for (const int64_t t : {word, word - 1}) {
        if (t < parent.begin || t >= parent.end || is_taken(t)) continue;
        node.begin = t, node.end = t + 1;
        taken_[t] = t + 1;
        return;
      }
    }
    // Not inside of a sibling's range.
    const auto next = taken_.lower_bound(word);
    if (next != taken_.begin()) {
      const auto& [first, last] = *std::prev(next);
      if (last > word) word = word - first < last - word ? first : last;
    }
    node.begin = node.end = word;
    if (word == parent.end) node.is_right = false;
    if (word == parent.begin) node.is_right = true;
  }

  const TextBlock& block_;
  const WordLinks& links_;
  std::vector<Node> nodes_;
  std::map<size_t, Proportional> proportional_;
  std::map<int64_t, int64_t> taken_;  // ranges of the present parent's children
};

// Writes the text and the marks.
class Writer {
 public:
  Writer(std::string& out, std::string_view document, const TextBlock& block,
         const BlockTranslation& translation, std::vector<int64_t>& positions)
      : out_(out),
        document_(document),
        block_(block),
        text_(translation.text),
        positions_(positions) {
    for (size_t i = 0; i < translation.placed.size(); ++i) {
      fixed_.push_back({.text = translation.placed[i], .raw = block.fixed[i].raw});
    }
    std::ranges::sort(fixed_, {}, [](const FixedText& f) { return f.text.begin; });
    positions_.assign(text_.size() + 1, 0);
    first_ = 0;
    while (first_ < text_.size()) {
      const CodePoint c = decode_utf8(text_, first_);
      if (!is_space(c.value)) break;
      first_ += c.bytes;
    }
  }

  void write(const Placer& placer, const std::vector<TextSpan>& words) {
    const std::vector<Node>& nodes = placer.nodes();
    struct Step {
      size_t node;
      bool is_end;
    };
    const auto begin_of = [&](int64_t word) {
      const bool is_last = word >= static_cast<int64_t>(words.size());
      if (is_last) return words.empty() ? size_t{0} : static_cast<size_t>(words.back().end);
      return static_cast<size_t>(words[static_cast<size_t>(word)].begin);
    };
    const auto end_of = [&](int64_t word) {  // of the word before it
      return word <= 0 ? size_t{0} : static_cast<size_t>(words[static_cast<size_t>(word - 1)].end);
    };
    std::vector<Step> todo{{0, false}};
    while (!todo.empty()) {
      const auto [index, is_end] = todo.back();
      todo.pop_back();
      const Node& node = nodes[index];
      const bool is_root = index == 0;
      if (is_end) {
        if (node.begin < node.end) text_until(end_of(node.end));
        if (node.close >= 0) raw(node.close);
        continue;
      }
      if (!is_root) {
        text_until(node.begin == node.end && !node.is_right ? end_of(node.begin)
                                                            : begin_of(node.begin));
      }
      if (node.open >= 0) raw(node.open);
      if (!node.is_element) continue;
      todo.push_back({index, true});
      if (const auto list = placer.proportional().find(index);
          list != placer.proportional().end()) {
        for (const auto& [mark, word] : list->second) {
          const bool is_open = block_.marks[static_cast<size_t>(mark)].kind != Mark::Kind::close;
          text_until(is_open ? begin_of(word) : end_of(word));
          raw(mark);
        }
        continue;
      }
      for (size_t i = node.children.size(); i-- > 0;) todo.push_back({node.children[i], false});
    }
    text_until(text_.size());
    positions_[text_.size()] = static_cast<int64_t>(out_.size());
  }

 private:
  void raw(int64_t mark) { raw(block_.marks[static_cast<size_t>(mark)].raw); }
  void raw(TextSpan span) {
    out_ += document_.substr(static_cast<size_t>(span.begin),
                             static_cast<size_t>(span.end - span.begin));
  }

  void text_until(size_t end) {
    while (at_ < end) {
      if (next_fixed_ < fixed_.size() &&
          static_cast<size_t>(fixed_[next_fixed_].text.begin) <= at_) {
        const FixedText& fixed = fixed_[next_fixed_++];
        const auto last = static_cast<size_t>(fixed.text.end);
        for (; at_ < last; ++at_) positions_[at_] = static_cast<int64_t>(out_.size());
        raw(fixed.raw);
        continue;
      }
      const auto position = static_cast<int64_t>(out_.size());
      const size_t bytes = append_escaped(out_, text_, at_, block_, at_ == first_);
      for (size_t i = 0; i < bytes; ++i) positions_[at_ + i] = position + static_cast<int64_t>(i);
      at_ += bytes;
    }
  }

  std::string& out_;
  std::string_view document_;
  const TextBlock& block_;
  std::string_view text_;
  std::vector<int64_t>& positions_;
  std::vector<FixedText> fixed_;
  size_t at_ = 0, next_fixed_ = 0, first_ = 0;
};

}  // namespace

void append_marked(std::string& out, std::string_view document, const TextBlock& block,
                   const BlockTranslation& translation, std::vector<int64_t>* positions) {
  const auto atoms = [](std::string_view text, std::vector<TextSpan> fixed) {
    std::vector<TextSpan> all = find_placeholders(text);
    all.insert(all.end(), fixed.begin(), fixed.end());
    std::ranges::sort(all, {}, &TextSpan::begin);
    // A fixed part may have a placeholder in it.
    std::vector<TextSpan> disjoint;
    for (const TextSpan& span : all) {
      if (disjoint.empty() || span.begin >= disjoint.back().end) {
        disjoint.push_back(span);
      } else {
        disjoint.back().end = std::max(disjoint.back().end, span.end);
      }
    }
    return disjoint;
  };
  std::vector<TextSpan> fixed;
  for (const FixedText& f : block.fixed) fixed.push_back(f.text);
  const WordLinks links =
      link_words(block.text, atoms(block.text, fixed), translation.text,
                 atoms(translation.text, {translation.placed.begin(), translation.placed.end()}),
                 translation.alignments);
  const Placer placer(block, links);
  std::vector<int64_t> unused;
  Writer(out, document, block, translation, positions ? *positions : unused)
      .write(placer, links.target);
}

}  // namespace heed
