// Writes the translation of a block of text with the block's markup.
//
// Every mark of the block is written exactly once. Pairs stay well nested: each element is one range
// of target words inside that of its parent, chosen by the alignments so that as many of its own
// words and as few others as possible are in it; siblings may change their order. Time is linear in
// the text and the marks, up to a logarithm; elements that are nested very deeply are placed in
// proportion to their place in the source.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/engine.h"
#include "text/markup/marked_text.h"

namespace heed {

struct BlockTranslation {
  std::string_view text;
  std::span<const Alignment> alignments;
  std::span<const TextSpan> placed;  // of `text`: where the block's fixed parts are
};

// Appends to `out`. `positions`, if given, gets the place in `out` of each byte of the translation,
// and of its end.
void append_marked(std::string& out, std::string_view document, const TextBlock& block,
                   const BlockTranslation& translation, std::vector<int64_t>* positions = nullptr);

}  // namespace heed
