// Splits a text into sentences (Unicode's UAX #29, with English abbreviations).
//
//   for (TextSpan s : split_sentences("Mr. Smith left.  Why?")) …    // "Mr. Smith left.", "Why?"
#pragma once

#include <string_view>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// The byte spans of the sentences, in order, without surrounding white space. A line break ends a
// sentence too. Only white space is outside the spans.
std::vector<TextSpan> split_sentences(std::string_view text);

}  // namespace heed
