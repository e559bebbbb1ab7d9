#include "infer/markup/word_links.h"

#include <algorithm>
#include <map>

#include "text/unicode/words.h"

namespace heed {
namespace {

// The words of the text; those that an atom touches are parts of it.
std::vector<TextSpan> words_of(std::string_view text, std::span<const TextSpan> atoms) {
  std::vector<TextSpan> words;
  size_t next = 0;
  const auto add_atoms = [&](int64_t before) {
    for (; next < atoms.size() && atoms[next].begin < before; ++next) {
      if (atoms[next].begin < atoms[next].end) words.push_back(atoms[next]);
    }
  };
  for (TextSpan word : word_spans(text)) {
    // A word may begin or end inside of an atom: its parts outside are words.
    while (word.begin < word.end) {
      add_atoms(word.begin);
      if (!words.empty()) word.begin = std::max(word.begin, words.back().end);
      if (word.begin >= word.end) break;
      int64_t end = word.end;
      if (next < atoms.size()) end = std::min(end, std::max(atoms[next].begin, word.begin));
      if (end > word.begin) words.push_back({word.begin, end});
      word.begin = end;
      add_atoms(end + 1);
    }
  }
  add_atoms(static_cast<int64_t>(text.size()) + 1);
  return words;
}

// The word that holds byte `at`, or none.
int64_t word_at(const std::vector<TextSpan>& words, int64_t at) {
  const auto after = std::ranges::upper_bound(words, at, {}, &TextSpan::begin);
  if (after == words.begin() || std::prev(after)->end <= at) return -1;
  return std::prev(after) - words.begin();
}

}  // namespace

int64_t WordLinks::source_after(int64_t at) const {
  return std::ranges::upper_bound(source, at, {}, &TextSpan::end) - source.begin();
}

int64_t WordLinks::source_before(int64_t at) const {
  return std::ranges::lower_bound(source, at, {}, &TextSpan::begin) - source.begin() - 1;
}

WordLinks link_words(std::string_view source, std::span<const TextSpan> source_atoms,
                     std::string_view target, std::span<const TextSpan> target_atoms,
                     std::span<const Alignment> alignments) {
  WordLinks links;
  links.source = words_of(source, source_atoms);
  links.target = words_of(target, target_atoms);
  // The weights of a word's tokens are summed for each source word; the largest sum wins.
  std::vector<std::map<int64_t, double>> weights(links.target.size());
  for (const Alignment& alignment : alignments) {
    // A token may begin with the space before its word.
    const int64_t s = word_at(links.source, alignment.source.end - 1);
    const int64_t t = word_at(links.target, alignment.target.end - 1);
    if (s >= 0 && t >= 0) weights[static_cast<size_t>(t)][s] += alignment.weight;
  }
  const size_t count = links.source.size();
  links.first_of.assign(count, -1), links.last_of.assign(count, -1);
  for (size_t t = 0; t < weights.size(); ++t) {
    const auto best = std::ranges::max_element(
        weights[t], [](const auto& a, const auto& b) { return a.second < b.second; });
    links.source_of.push_back(best == weights[t].end() ? -1 : best->first);
    if (best == weights[t].end()) continue;
    const auto s = static_cast<size_t>(best->first);
    if (links.first_of[s] < 0) links.first_of[s] = static_cast<int64_t>(t);
    links.last_of[s] = static_cast<int64_t>(t) + 1;
  }
  links.linked_before.assign(count, -1), links.linked_after.assign(count, -1);
  for (size_t s = 0; s < count; ++s) {
    if (links.first_of[s] >= 0) {
      links.linked_before[s] = static_cast<int64_t>(s);
    } else if (s > 0) {
      links.linked_before[s] = links.linked_before[s - 1];
    }
  }
  for (size_t s = count; s-- > 0;) {
    if (links.first_of[s] >= 0) {
      links.linked_after[s] = static_cast<int64_t>(s);
    } else if (s + 1 < count) {
      links.linked_after[s] = links.linked_after[s + 1];
    }
  }
  return links;
}

}  // namespace heed
