#include "data/objectives/span_corruption.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/check.h"

namespace heed {

namespace {

// Lengths of `parts` runs with the sum `total`, each at least 1, uniform over all compositions. Needs
// total >= parts >= 1.
std::vector<int64_t> random_division(int64_t total, int64_t parts, Random& random) {
  // parts - 1 cuts among the total - 1 gaps, by selection sampling, which needs no set.
  std::vector<int64_t> lengths;
  int64_t run = 1, cuts_left = parts - 1;
  for (int64_t place = 0; place < total - 1; ++place) {
    const int64_t places_left = total - 1 - place;
    const bool cut =
        cuts_left > 0 &&
        static_cast<int64_t>(random.below(static_cast<uint64_t>(places_left))) < cuts_left;
    if (cut) {
      lengths.push_back(run);
      run = 0;
      --cuts_left;
    }
    ++run;
  }
  lengths.push_back(run);
  return lengths;
}

}  // namespace

SpanCorruption::Counts SpanCorruption::counts(int64_t length) const {
  if (length < 2) return {};
  // nearbyint rounds halves to even, as TensorFlow's round().
  const auto rounded = [](double x) { return static_cast<int64_t>(std::nearbyint(x)); };
  const int64_t noise =
      std::clamp<int64_t>(rounded(static_cast<double>(length) * rate), 1, length - 1);
  int64_t spans = std::max<int64_t>(1, rounded(static_cast<double>(noise) / mean_span));
  spans = std::min({spans, noise, length - noise});  // each span and each gap has a token
  return {noise, spans};
}

int64_t SpanCorruption::input_rows(int64_t length) const {
  const Counts c = counts(length);
  return length - c.noise_tokens + c.spans + 1;
}

int64_t SpanCorruption::target_rows(int64_t length) const {
  const Counts c = counts(length);
  return c.noise_tokens + c.spans + 1;
}

int64_t SpanCorruption::longest_text(int64_t rows) const {
  int64_t length = 0;
  while (input_rows(length + 1) <= rows) ++length;
  return length;
}

std::vector<uint8_t> span_mask(const SpanCorruption& corruption, int64_t length, Random& random) {
  std::vector<uint8_t> mask;
  const SpanCorruption::Counts counts = corruption.counts(length);
  if (counts.spans == 0) return std::vector<uint8_t>(static_cast<size_t>(length), 0);
  const auto noise = random_division(counts.noise_tokens, counts.spans, random);
  const auto kept = random_division(length - counts.noise_tokens, counts.spans, random);
  for (size_t s = 0; s < noise.size(); ++s) {
    mask.insert(mask.end(), static_cast<size_t>(kept[s]), 0);
    mask.insert(mask.end(), static_cast<size_t>(noise[s]), 1);
  }
  return mask;
}

void corrupt_spans(std::span<const int32_t> text, std::span<const uint8_t> mask,
                   std::span<const int32_t> sentinels, std::vector<int32_t>& input,
                   std::vector<int32_t>& target) {
  HEED_CHECK(text.size() == mask.size(), "the mask must have the size of the text");
  size_t spans = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (mask[i] == 0) {
      input.push_back(text[i]);
      continue;
    }
    if (i == 0 || mask[i - 1] == 0) {
      HEED_CHECK(spans < sentinels.size(), "there must be a sentinel for each span");
      input.push_back(sentinels[spans]);
      target.push_back(sentinels[spans]);
      ++spans;
    }
    target.push_back(text[i]);
  }
  if (!text.empty() && mask.back() == 0) {
    HEED_CHECK(spans < sentinels.size(), "there must be a sentinel for each span");
    target.push_back(sentinels[spans]);
  }
}

std::vector<int32_t> find_sentinels(const Tokenizer& tokenizer) {
  std::vector<int32_t> sentinels;
  for (;;) {
    const auto id = tokenizer.find("<extra_id_" + std::to_string(sentinels.size()) + ">");
    if (!id) return sentinels;
    sentinels.push_back(*id);
  }
}

}  // namespace heed
