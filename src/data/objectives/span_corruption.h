// T5's span corruption (Raffel et al. 2020, section 3.1.4): spans are replaced by sentinels, and the
// target contains the spans.
//
//   text     Thank you for inviting me to your party last week .
//   input    Thank you <X> me to your party <Y> week .
//   target   <X> for inviting <Y> last <Z>
//
// The last sentinel of the target appears only when the text does not end in a span; the masks made
// here always end in one, as in the published code (random_spans_noise_mask). Each side ends with the
// end token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "heed/tokenizer.h"

namespace heed {

struct SpanCorruption {
  double rate = 0.15;    // fraction of tokens in spans
  double mean_span = 3;  // tokens per span

  // The number of noise tokens and spans of a text of `length` tokens.
  struct Counts {
    int64_t noise_tokens = 0, spans = 0;
  };
  Counts counts(int64_t length) const;

  // Rows of each side with its end token; depends only on the length.
  int64_t input_rows(int64_t length) const;
  int64_t target_rows(int64_t length) const;
  // The longest text whose input has at most `rows` rows; 0 when there is none.
  int64_t longest_text(int64_t rows) const;
};

// 1 for noise tokens: counts() tokens and spans of random lengths, alternating with kept runs, the
// first of which is kept. `length` > 0; a single token is kept.
std::vector<uint8_t> span_mask(const SpanCorruption& corruption, int64_t length, Random& random);

// Both sides for any mask, without the end tokens. Needs a sentinel for each span, and one more if the
// text does not end in one.
void corrupt_spans(std::span<const int32_t> text, std::span<const uint8_t> mask,
                   std::span<const int32_t> sentinels, std::vector<int32_t>& input,
                   std::vector<int32_t>& target);

// The ids of <extra_id_0>, <extra_id_1>, … in the vocabulary.
std::vector<int32_t> find_sentinels(const Tokenizer& tokenizer);

}  // namespace heed
