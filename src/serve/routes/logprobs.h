// The tokens of a completion as OpenAI's API lists them beside their log-probabilities: each with
// the text that it adds, and where that stands.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/model.h"

namespace heed::serve {

struct ListedToken {
  size_t place = 0;    // among the ids
  std::string text{};  // empty: it is part of a character that a later one completes, or no text
  int64_t offset = 0;  // of its first character, in the text that is returned
};

struct Completed {
  std::span<const int32_t> ids;  // the prompt's, or the decoder's start; then the answer's
  size_t answer_tokens = 0;      // the last ones; without the token that ended the text
  std::string_view answer{};     // their text
  bool is_cut = false;           // a stop text ended it: there are ids behind its end
  // Where the prompt is listed too: its text, and whether it was given as text or as ids.
  std::optional<std::string_view> prompt{};
  bool prompt_is_text = false;
};

// All that are text: not what the template puts around a prompt, nor what follows a stop text. The
// texts together are what is returned, but for a last token that goes on behind a stop text's
// beginning, and white space of the prompt that its tokenizer drops.
std::vector<ListedToken> listed_tokens(const Model& model, const Completed& completed);

// What an id would add after these. Where that is nothing to read, as with part of a character, its
// piece.
std::string spelt_after(const Model& model, std::span<const int32_t> before, int32_t id);

}  // namespace heed::serve
