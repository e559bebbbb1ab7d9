#include "data/objectives/infilling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace heed {

namespace {

// `count` distinct numbers of [0, n) in random order.
std::vector<size_t> draw_places(size_t n, size_t count, Random& random) {
  std::vector<size_t> places(n);
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t i = 0; i < count; ++i) std::swap(places[i], places[i + random.below(n - i)]);
  places.resize(count);
  return places;
}

struct SpanLengths {
  std::vector<int64_t> spans;  // each at least 1
  int64_t inserted = 0;        // masks of spans of length 0
};

// Span lengths with the sum `total` > 0.
SpanLengths draw_lengths(int64_t total, double mean, Random& random) {
  SpanLengths lengths;
  for (int64_t covered = 0; covered < total;) {
    const int64_t length = std::min(draw_poisson(mean, random), total - covered);
    if (length == 0) {
      ++lengths.inserted;
    } else {
      lengths.spans.push_back(length);
      covered += length;
    }
  }
  return lengths;
}

std::vector<size_t> word_starts(const Infilling& infilling, std::span<const int32_t> text) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || infilling.begins_word.empty() ||
                        infilling.begins_word[static_cast<size_t>(text[i])] != 0;
    if (begins) starts.push_back(i);
  }
  return starts;
}

}  // namespace

std::vector<int32_t> permute_sentences(std::span<const int32_t> text,
                                       std::span<const int32_t> starts, double share,
                                       Random& random) {
  const size_t sentences = starts.size() + 1;
  const auto moved =
      std::min(sentences, static_cast<size_t>(std::ceil(static_cast<double>(sentences) * share)));
  std::vector<size_t> order(sentences);
  std::iota(order.begin(), order.end(), size_t{0});
  const std::vector<size_t> places = draw_places(sentences, moved, random);
  const std::vector<size_t> exchange = draw_places(moved, moved, random);
  for (size_t i = 0; i < moved; ++i) order[places[i]] = places[exchange[i]];

  std::vector<int32_t> permuted;
  permuted.reserve(text.size());
  for (const size_t s : order) {
    const auto begin = s == 0 ? 0 : static_cast<size_t>(starts[s - 1]);
    const auto end = s < starts.size() ? static_cast<size_t>(starts[s]) : text.size();
    permuted.insert(permuted.end(), text.begin() + static_cast<ptrdiff_t>(begin),
                    text.begin() + static_cast<ptrdiff_t>(end));
  }
  return permuted;
}

std::vector<int32_t> infill(const Infilling& infilling, std::span<const int32_t> text,
                            Random& random) {
  const std::vector<size_t> starts = word_starts(infilling, text);
  const size_t words = starts.size();
  const auto total = static_cast<int64_t>(std::ceil(static_cast<double>(words) * infilling.rate));
  if (total <= 0) return {text.begin(), text.end()};
  const SpanLengths lengths = draw_lengths(total, infilling.mean_span, random);
  const std::vector<size_t> places = draw_places(words, lengths.spans.size(), random);

  enum : uint8_t { kKept, kMasked, kGone };
  std::vector<uint8_t> fate(words, kKept);
  for (const size_t place : places) fate[place] = kMasked;
  for (size_t s = 0; s < places.size(); ++s) {
    const size_t end = std::min(words, places[s] + static_cast<size_t>(lengths.spans[s]));
    for (size_t word = places[s] + 1; word < end; ++word) fate[word] = kGone;
  }
  std::vector<int32_t> noised;
  for (size_t word = 0; word < words; ++word) {
    if (fate[word] == kMasked) noised.push_back(infilling.mask_id);
    if (fate[word] != kKept) continue;
    const size_t end = word + 1 < words ? starts[word + 1] : text.size();
    noised.insert(noised.end(), text.begin() + static_cast<ptrdiff_t>(starts[word]),
                  text.begin() + static_cast<ptrdiff_t>(end));
  }
  for (int64_t i = 0; i < lengths.inserted && noised.size() < text.size(); ++i) {
    const uint64_t place = random.below(noised.size() + 1);
    noised.insert(noised.begin() + static_cast<ptrdiff_t>(place), infilling.mask_id);
  }
  return noised;
}

int64_t draw_poisson(double mean, Random& random) {
  HEED_CHECK(mean > 0 && mean < 100, "the mean must be between 0 and 100");
  const double limit = std::exp(-mean);
  int64_t count = 0;
  for (double product = random.uniform(); product > limit; product *= random.uniform()) ++count;
  return count;
}

}  // namespace heed
