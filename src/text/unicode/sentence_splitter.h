// Where the sentences of a text are (Unicode's UAX #29, with English abbreviations).
//
//   for (TextSpan s : split_sentences("Mr. Smith left.  Why?")) …    // "Mr. Smith left.", "Why?"
#pragma once

#include <string_view>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// Bytes of the sentences, in order, without the white space around them. A line's end ends a
// sentence too. What is between the spans is white space; a text of nothing else has none.
std::vector<TextSpan> split_sentences(std::string_view text);

}  // namespace heed
