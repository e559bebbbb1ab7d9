// Phrases that must not, or must, occur in a text. All is told from the text itself, so that
// nothing has to be kept when beams fork.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

using Phrases = std::vector<std::vector<int32_t>>;

// Appends every id that would complete a phrase after `text`.
void completions(const Phrases& phrases, std::span<const int32_t> text, std::vector<int32_t>& ids);

// How far a text has come with phrases that it must contain.
struct PhraseProgress {
  int64_t met = 0;            // tokens: of whole phrases, and of the one that is under way
  int64_t begun = 0;          // of those, the latter's: in vain if another token comes now
  int64_t left = 0;           // tokens that are missing
  std::vector<int32_t> next;  // ids that bring it on: of the phrase under way, or any first ones
};
// Not necessarily the longest that is under way could be finished alone: the one nearest to its
// end counts, the others start anew.
PhraseProgress progress(const Phrases& required, std::span<const int32_t> text);

}  // namespace heed
