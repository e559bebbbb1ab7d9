// The tokens of a completion for OpenAI's "logprobs" object: the text of each token and its offset.
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
  size_t place = 0;    // index in the ids
  std::string text{};  // empty: part of a character that a later token completes, or no text
  int64_t offset = 0;  // in characters, in the returned text
};

struct Completed {
  std::span<const int32_t> ids;  // the prompt (or decoder start tokens), then the completion
  size_t answer_tokens = 0;      // at the end, without the end-of-sequence token
  std::string_view answer{};     // its text
  bool is_cut = false;           // ended by a stop string: ids continue after the text
  // With echo: the text of the prompt, and whether it was given as text or as ids.
  std::optional<std::string_view> prompt{};
  bool prompt_is_text = false;
};

// All tokens with text: no special tokens around the prompt, nothing after a stop string. The
// concatenated texts are the returned text, except for a last token that continues into the stop
// string, and white space of the prompt that the tokenizer drops.
std::vector<ListedToken> listed_tokens(const Model& model, const Completed& completed);

// The text that `id` adds after `before`; its piece where that is not readable, as with part of a
// character.
std::string text_after(const Model& model, std::span<const int32_t> before, int32_t id);

}  // namespace heed::serve
