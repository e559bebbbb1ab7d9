// Tokens that are found in the text before anything else happens to it: [MASK], <|endoftext|>.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/containers/byte_trie.h"
#include "text/tokenizer_json/json_node.h"
#include "text/tokenizer_json/normalizers.h"

namespace heed {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes the white space before it too
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for in the normalised text
  bool is_special = false;   // left out by decode() on demand
};

// The list under "added_tokens". Throws corrupt_file.
std::vector<AddedToken> read_added_tokens(const JsonNode& node);

// Some added tokens, ready to be looked for.
class AddedTokenFinder {
 public:
  struct Part {
    size_t begin = 0, end = 0;
    int32_t id = -1;  // -1: ordinary text
  };

  // Looks for the token as the normalizer leaves it, if there is one.
  void add(const AddedToken& token, const Normalizer* normalizer);
  bool empty() const { return tokens_.empty(); }

  // Cuts all of the text, from left to right; where several tokens begin, the longest counts.
  // Calls part(Part) for each, none of them empty.
  template <class Found>
  void cut(std::string_view text, const Found& found) const {
    size_t at = 0;
    for (size_t from = 0; const Match match = next(text, from, at);) {
      from = match.end;
      if (!match.taken) continue;
      if (at < match.part.begin) found(Part{at, match.part.begin});
      found(match.part);
      at = match.part.end;
    }
    if (at < text.size()) found(Part{at, text.size()});
  }

 private:
  struct Match {
    bool found = false, taken = false;
    size_t end = 0;  // where to look on
    Part part;
    explicit operator bool() const { return found; }
  };
  // The next token from byte `from`; what comes before `taken_end` belongs to an earlier one.
  Match next(std::string_view text, size_t from, size_t taken_end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;  // values are places in tokens_
};

}  // namespace heed
