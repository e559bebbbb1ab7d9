// Terminology: glossary terms in a source.
#pragma once

#include <string_view>

namespace heed {

// Whether the text contains `words` as whole words, in any case: "car" is in "The Car." and not in
// "carpet". In scripts without spaces every position is a word boundary.
bool contains_words(std::string_view text, std::string_view words);

}  // namespace heed
