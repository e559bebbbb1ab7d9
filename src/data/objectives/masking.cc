#include "data/objectives/masking.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "data/batches/batch.h"

namespace heed {

namespace {

struct Word {
  uint32_t begin, end;  // positions of its tokens
};

// The units of selection: tokens, or whole words.
std::vector<Word> choosable_words(const Masking& masking, std::span<const int32_t> tokens,
                                  std::span<const uint8_t> fixed) {
  std::vector<Word> words;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    if (fixed[i] != 0) continue;
    const bool goes_on = masking.whole_words && !words.empty() && words.back().end == i &&
                         masking.begins_word[static_cast<size_t>(tokens[i])] == 0;
    if (goes_on) {
      words.back().end = i + 1;
    } else {
      words.push_back({i, i + 1});
    }
  }
  return words;
}

}  // namespace

void mask_tokens(const Masking& masking, std::span<int32_t> tokens, std::span<const uint8_t> fixed,
                 std::span<int32_t> labels, Random& random) {
  HEED_CHECK(tokens.size() == fixed.size() && tokens.size() == labels.size(),
             "tokens, fixed and labels must have the same size");
  std::fill(labels.begin(), labels.end(), kIgnoreLabel);
  std::vector<Word> words = choosable_words(masking, tokens, fixed);
  if (words.empty()) return;
  const auto choosable = std::count(fixed.begin(), fixed.end(), 0);
  int64_t left = std::max<int64_t>(
      1, static_cast<int64_t>(std::nearbyint(static_cast<double>(choosable) * masking.rate)));

  const auto hide = [&](uint32_t place) {
    labels[place] = tokens[place];
    const double draw = random.uniform();
    if (draw < masking.mask_share) {
      tokens[place] = masking.mask_id;
    } else if (draw < masking.mask_share + masking.random_share) {
      tokens[place] = static_cast<int32_t>(random.below(static_cast<uint64_t>(masking.vocabulary)));
    }
  };
  // Words in random order; one that exceeds the remaining budget is skipped, unless nothing was
  // selected.
  std::optional<Word> too_long;
  const int64_t wanted = left;
  for (size_t i = 0; i < words.size() && left > 0; ++i) {
    std::swap(words[i], words[i + random.below(words.size() - i)]);
    const Word word = words[i];
    const int64_t size = word.end - word.begin;
    if (size > left) {
      if (!too_long || size < too_long->end - too_long->begin) too_long = word;
      continue;
    }
    for (uint32_t place = word.begin; place < word.end; ++place) hide(place);
    left -= size;
  }
  if (left == wanted && too_long) {
    for (uint32_t place = too_long->begin; place < too_long->end; ++place) hide(place);
  }
}

}  // namespace heed
