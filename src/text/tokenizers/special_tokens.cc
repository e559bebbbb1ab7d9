#include "text/tokenizers/special_tokens.h"

#include <algorithm>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// What Python's str.strip() removes: white space, and the separators U+001C … U+001F.
bool is_stripped(char32_t c) { return is_space(c) || (c >= 0x1c && c <= 0x1f); }

size_t skip_space(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const CodePoint c = decode_utf8(text, begin);
    if (!is_stripped(c.value)) break;
    begin += c.bytes;
  }
  return begin;
}

size_t skip_space_back(std::string_view text, size_t begin, size_t end) {
  while (end > begin) {
    const CodePoint c = decode_utf8_before(text, end);
    if (!is_stripped(c.value)) break;
    end -= c.bytes;
  }
  return end;
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const SpecialToken& token) { return token.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    by_first_byte_[static_cast<unsigned char>(tokens_[i].text[0])].push_back(
        static_cast<int32_t>(i));
  }
}

bool SpecialTokens::has(int32_t id) const {
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [id](const SpecialToken& token) { return token.id == id; });
}

const SpecialToken* SpecialTokens::longest_at(std::string_view text, size_t position) const {
  for (const int32_t i : by_first_byte_[static_cast<unsigned char>(text[position])]) {
    const SpecialToken& token = tokens_[static_cast<size_t>(i)];
    if (text.substr(position).starts_with(token.text)) return &token;
  }
  return nullptr;
}

std::vector<SpecialTokens::Part> SpecialTokens::split(std::string_view text) const {
  std::vector<Part> parts;
  size_t begin = 0;  // of the current run of ordinary text
  const auto add_text = [&](size_t end) {
    if (end > begin) parts.push_back({begin, end, -1});
  };
  for (size_t at = 0; at < text.size();) {
    const SpecialToken* token = longest_at(text, at);
    if (!token) {
      ++at;
      continue;
    }
    add_text(token->strip_left ? skip_space_back(text, begin, at) : at);
    parts.push_back({at, at + token->text.size(), token->id});
    at += token->text.size();
    if (token->strip_right) at = skip_space(text, at);
    begin = at;
  }
  add_text(text.size());
  return parts;
}

}  // namespace heed
