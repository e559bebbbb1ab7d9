#include "infer/search/phrases.h"

#include <algorithm>

namespace heed {
namespace {

bool ends_with(std::span<const int32_t> text, std::span<const int32_t> end) {
  return text.size() >= end.size() && std::ranges::equal(text.last(end.size()), end);
}

bool contains(std::span<const int32_t> text, std::span<const int32_t> phrase) {
  // Not std::ranges::search(): clang 14 cannot compile its subrange.
  return phrase.empty() ||
         std::search(text.begin(), text.end(), phrase.begin(), phrase.end()) != text.end();
}

// Length of the longest prefix of the phrase that the text ends with.
size_t matched_prefix(std::span<const int32_t> text, std::span<const int32_t> phrase) {
  for (size_t n = std::min(phrase.size() - 1, text.size()); n > 0; --n) {
    if (ends_with(text, phrase.first(n))) return n;
  }
  return 0;
}

}  // namespace

void completions(const Phrases& phrases, std::span<const int32_t> text, std::vector<int32_t>& ids) {
  for (const std::vector<int32_t>& phrase : phrases) {
    if (!phrase.empty() && ends_with(text, std::span(phrase).first(phrase.size() - 1))) {
      ids.push_back(phrase.back());
    }
  }
}

PhraseProgress progress(const Phrases& required, std::span<const int32_t> text) {
  PhraseProgress result;
  size_t best = 0;  // tokens of the phrase in progress
  for (const std::vector<int32_t>& phrase : required) {
    const auto length = static_cast<int64_t>(phrase.size());
    if (phrase.empty()) continue;
    if (contains(text, phrase)) {
      result.met += length;
      continue;
    }
    result.left += length;
    const size_t begun = matched_prefix(text, phrase);
    if (begun < best) continue;
    if (begun > best) result.next.clear(), best = begun;
    result.next.push_back(phrase[begun]);
  }
  result.begun = static_cast<int64_t>(best);
  result.met += static_cast<int64_t>(best), result.left -= static_cast<int64_t>(best);
  return result;
}

}  // namespace heed
