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

// A quote, which taggers confuse with an apostrophe, so that one side may delete it and the other
// not: where it stands, to put it back.
struct TreeQuote {
  TreeWord term{};
  int word = 0;             // its number, or that of the word after it when it was deleted
  int bracket = 0;          // the number of the next bracket to open
  std::vector<int> open{};  // the brackets around it
};

struct BracketTree {
  int length = 0;                       // words, but for those of delete_label_for_length
  std::vector<TreeWord> words{};        // without those of delete_label
  std::vector<TreeBracket> brackets{};  // in the order in which they open
  std::vector<TreeQuote> quotes{};
  std::string problem{};  // not empty: what is wrong with the text, and the rest is meaningless
};

// Never throws for what is in `text`: a damaged tree is one sentence's problem.
BracketTree parse_bracket_tree(std::string_view text, const BracketOptions& options);

}  // namespace heed
