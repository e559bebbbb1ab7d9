// Added tokens ([MASK], <|endoftext|>): matched in the text before pre-tokenization.
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
  bool lstrip = false;       // also matches the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // matched in the normalized text
  bool is_special = false;   // skipped by decode() with skip_special_tokens
};

// The list under "added_tokens". Throws corrupt_file.
std::vector<AddedToken> read_added_tokens(const JsonNode& node);

// Matches a set of added tokens.
class AddedTokenFinder {
 public:
  struct Part {
    size_t begin = 0, end = 0;
    int32_t id = -1;  // -1: ordinary text
  };

  // Matches the token's normalized form, if there is a normalizer.
  void add(const AddedToken& token, const Normalizer* normalizer);
  bool empty() const { return tokens_.empty(); }

  // Splits the text at added tokens; leftmost, longest match. Calls part(Part) for each part; none is
  // empty.
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
    size_t end = 0;  // where the search continues
    Part part;
    explicit operator bool() const { return found; }
  };
  // The next token from byte `from`; bytes before `taken_end` belong to an earlier match.
  Match next(std::string_view text, size_t from, size_t taken_end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;  // values are indices in tokens_
};

}  // namespace heed
