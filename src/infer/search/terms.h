// Terminology: which words of a source must become which words of its translation.
#pragma once

#include <string_view>

namespace heed {

// Whether `words` stand in the text as whole words, in upper or lower case: "car" is in "The Car."
// and not in "carpet". In scripts without spaces between words every place is a word's.
bool contains_words(std::string_view text, std::string_view words);

}  // namespace heed
