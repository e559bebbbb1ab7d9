// Words of a text and of its translation, linked by the alignments of their tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "heed/engine.h"

namespace heed {

struct WordLinks {
  std::vector<TextSpan> source, target;  // words; white space is in none
  std::vector<int64_t> source_of;        // of each target word: its source word, or -1
  // Of each source word: its first target word and the one after its last, or -1.
  std::vector<int64_t> first_of, last_of;
  // Of each source word: the nearest one with a target word, it included, to the left and to the
  // right; -1: none.
  std::vector<int64_t> linked_before, linked_after;

  // The source word that holds byte `at` or follows it, and the one that holds the byte before `at`
  // or precedes it; source.size() and -1 if there is none.
  int64_t source_after(int64_t at) const;
  int64_t source_before(int64_t at) const;
};

// Spans in `source_atoms` and `target_atoms` (placeholders) are one word each; they are in order and
// disjoint.
WordLinks link_words(std::string_view source, std::span<const TextSpan> source_atoms,
                     std::string_view target, std::span<const TextSpan> target_atoms,
                     std::span<const Alignment> alignments);

}  // namespace heed
