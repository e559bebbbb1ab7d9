#include "serve/routes/logprobs.h"

#include <algorithm>

#include "infer/engine/text_stream.h"
#include "text/unicode/utf8.h"

namespace heed::serve {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // decoded from part of a character
constexpr size_t kContext = 8;  // ids that can influence how the next one is decoded

// Without an incomplete character at the end.
std::string_view whole_characters(std::string_view text) {
  text = text.substr(0, well_formed_prefix(text));
  while (text.ends_with(kReplacement)) text.remove_suffix(kReplacement.size());
  return text;
}

// The last start of a character at or before `at`.
size_t character_start(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

// The tokens of a prompt that was given as text. Their texts are slices of it, because decoding may
// change it (for example to lower case).
std::vector<ListedToken> prompt_tokens(const Tokenizer& tokenizer, std::string_view text,
                                       size_t count) {
  const Encoding encoding = tokenizer.encode(text);
  std::vector<ListedToken> listed;
  size_t at = 0;
  for (size_t i = 0; i < std::min(count, encoding.ids.size()); ++i) {
    if (encoding.is_special[i]) continue;
    // White space between tokens is added to the token after it.
    const size_t end = character_start(
        text,
        std::min(text.size(), static_cast<size_t>(std::max<int64_t>(0, encoding.offsets[i].end))));
    const std::string_view part = text.substr(at, end > at ? end - at : 0);
    listed.push_back({.place = i, .text = std::string(part)});
    at += part.size();
  }
  return listed;
}

// Tokens with their incrementally decoded texts.
void add_decoded(const TokenizerPtr& tokenizer, std::span<const int32_t> ids, size_t begin,
                 std::vector<ListedToken>& listed) {
  TextStream stream(tokenizer, {}, ids.first(begin));
  for (size_t i = begin; i < ids.size(); ++i) {
    listed.push_back({.place = i, .text = stream.add(ids[i])});
  }
  if (begin < ids.size()) listed.back().text += stream.finish();
}

}  // namespace

std::vector<ListedToken> listed_tokens(const Model& model, const Completed& completed) {
  const size_t begin = completed.ids.size() - completed.answer_tokens;
  std::vector<ListedToken> listed;
  if (!model.has_tokenizer()) {
    for (size_t i = completed.prompt ? 0 : begin; i < completed.ids.size(); ++i) {
      listed.push_back({.place = i, .text = std::to_string(completed.ids[i])});
    }
    return listed;
  }
  int64_t offset = 0;
  if (completed.prompt) {
    if (completed.prompt_is_text) {
      listed = prompt_tokens(model.tokenizer(), *completed.prompt, begin);
    } else {
      add_decoded(model.tokenizer_pointer(), completed.ids.first(begin), 0, listed);
    }
  }
  for (ListedToken& token : listed) {
    token.offset = offset;
    offset += static_cast<int64_t>(count_code_points(token.text));
  }
  if (completed.prompt) offset = static_cast<int64_t>(count_code_points(*completed.prompt));
  std::vector<ListedToken> written;
  add_decoded(model.tokenizer_pointer(), completed.ids, begin, written);
  size_t bytes = 0;
  for (ListedToken& token : written) {
    if (completed.is_cut && bytes >= completed.answer.size()) break;
    bytes += token.text.size();
    token.offset = offset;
    offset += static_cast<int64_t>(count_code_points(token.text));
    listed.push_back(std::move(token));
  }
  return listed;
}

std::string text_after(const Model& model, std::span<const int32_t> before, int32_t id) {
  if (!model.has_tokenizer()) return std::to_string(id);
  const Tokenizer& tokenizer = model.tokenizer();
  if (id >= tokenizer.vocabulary_size())
    return std::to_string(id);  // padding rows of the embedding
  const auto context = before.last(std::min(before.size(), kContext));
  std::vector<int32_t> ids(context.begin(), context.end());
  const std::string known = tokenizer.decode(ids);
  ids.push_back(id);
  const std::string text = tokenizer.decode(ids);
  const std::string_view old_end = whole_characters(known), new_end = whole_characters(text);
  if (new_end.size() < text.size() || new_end.size() <= old_end.size() ||
      !new_end.starts_with(old_end)) {
    return tokenizer.piece(id);
  }
  return std::string(new_end.substr(old_end.size()));
}

}  // namespace heed::serve
