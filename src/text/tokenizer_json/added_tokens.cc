#include "text/tokenizer_json/added_tokens.h"

#include <algorithm>

#include "text/tokenizer_json/vocabulary.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {

std::vector<AddedToken> read_added_tokens(const JsonNode& node) {
  std::vector<AddedToken> tokens;
  for (const JsonNode& one : node.elements()) {
    AddedToken token;
    token.content = one.text("content");
    token.id = static_cast<int32_t>(one.at("id").integer(0, kMaxId));
    token.single_word = one.flag("single_word", false);
    token.lstrip = one.flag("lstrip", false);
    token.rstrip = one.flag("rstrip", false);
    token.is_special = one.flag("special", false);
    token.normalized = one.flag("normalized", !token.is_special);
    if (!token.content.empty()) tokens.push_back(std::move(token));
  }
  return tokens;
}

void AddedTokenFinder::add(const AddedToken& token, const Normalizer* normalizer) {
  AlignedText content(token.content, 0, false);
  if (normalizer != nullptr) normalizer->apply(content);
  // Of several equal tokens the first is used.
  if (content.text.empty() || trie_.longest_prefix(content.text).bytes == content.text.size()) {
    return;
  }
  trie_.insert(content.text, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
}

AddedTokenFinder::Match AddedTokenFinder::next(std::string_view text, size_t from,
                                               size_t taken_end) const {
  if (trie_.empty()) return {};
  ByteTrie::Match found;
  for (; from < text.size(); ++from) {
    if (!trie_.begins(text[from])) continue;
    found = trie_.longest_prefix(text.substr(from));
    if (found.value >= 0) break;
  }
  if (from >= text.size()) return {};

  const AddedToken& token = tokens_[static_cast<size_t>(found.value)];
  size_t begin = from, end = from + found.bytes;
  Match match{.found = true, .taken = true, .end = end, .part = {}};
  // An earlier token with rstrip may already include this one's first bytes.
  if (begin < taken_end) match.taken = false;
  if (token.single_word) {
    const bool goes_on = (begin > 0 && is_word_character(decode_utf8_before(text, begin).value)) ||
                         (end < text.size() && is_word_character(decode_utf8(text, end).value));
    if (goes_on) match.taken = false;
  }
  while (token.lstrip && begin > taken_end) {
    const CodePoint c = decode_utf8_before(text, begin);
    if (!is_space(c.value) || begin - c.bytes < taken_end) break;
    begin -= c.bytes;
  }
  while (token.rstrip && end < text.size()) {
    const CodePoint c = decode_utf8(text, end);
    if (!is_space(c.value)) break;
    end += c.bytes;
  }
  match.part = {begin, end, token.id};
  return match;
}

}  // namespace heed
