// Splits a text into words (Unicode's UAX #29; Chinese, Japanese, Thai by ICU's dictionaries).
//
//   for (TextSpan w : word_spans("Good morning!")) …    // "Good", "morning", "!"
#pragma once

#include <string_view>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// The byte spans of words, numbers and punctuation, in order. Only white space is outside of them.
std::vector<TextSpan> word_spans(std::string_view text);

}  // namespace heed
