// Phrases that must not, or must, occur. Progress is computed from the sequence alone, so that a
// fork of a beam has no state to copy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

using Phrases = std::vector<std::vector<int32_t>>;

// Appends every id that would complete a phrase after `text`.
void completions(const Phrases& phrases, std::span<const int32_t> text, std::vector<int32_t>& ids);

// Progress of a sequence with required phrases.
struct PhraseProgress {
  int64_t met = 0;            // tokens of complete phrases and of the one in progress
  int64_t begun = 0;          // of the one in progress: lost if another token follows
  int64_t left = 0;           // missing tokens
  std::vector<int32_t> next;  // ids that continue the phrase in progress, or begin one
};
// Of several phrases in progress the longest matched one counts.
PhraseProgress progress(const Phrases& required, std::span<const int32_t> text);

}  // namespace heed
