// A tree of the Penn Treebank as EVALB reads it: words with tags, and brackets over them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/metrics.h"

namespace heed {

struct TreeWord {
  std::string word{}, tag{};
};

struct TreeBracket {
  std::string label{};
  int start = 0, end = 0;  // words [start, end)
};

// A quote. Taggers confuse it with an apostrophe, so it may be deleted on one side only: its position
// lets it be restored.
struct TreeQuote {
  TreeWord term{};
  int word = 0;             // its index, or that of the next word when it was deleted
  int bracket = 0;          // the index of the next bracket to open
  std::vector<int> open{};  // the brackets around it
};

struct BracketTree {
  int length = 0;                       // words, except those of delete_label_for_length
  std::vector<TreeWord> words{};        // without those of delete_label
  std::vector<TreeBracket> brackets{};  // in the order in which they open
  std::vector<TreeQuote> quotes{};
  std::string problem{};  // if not empty, the text is invalid and the other fields are meaningless
};

// Never throws for invalid text: a damaged tree affects one sentence only.
BracketTree parse_bracket_tree(std::string_view text, const BracketOptions& options);

}  // namespace heed
