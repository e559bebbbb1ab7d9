#include "infer/engine/text_stream.h"

#include <algorithm>

namespace heed {
namespace {

// Preceding ids that can affect how the next ones are decoded.
constexpr size_t kContext = 8;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // decoded from part of a character
constexpr size_t kLongestCharacter = 4;

// Whether the text may end within a character: byte tokenizers keep the bytes, others put U+FFFD.
bool ends_within_character(std::string_view text) {
  if (text.ends_with(kReplacement)) return true;
  for (size_t n = 1; n < kLongestCharacter && n <= text.size(); ++n) {
    const auto byte = static_cast<unsigned char>(text[text.size() - n]);
    if (byte < 0x80) return false;
    if (byte < 0xC0) continue;  // continuation byte
    const size_t bytes = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return bytes > n;
  }
  return false;
}

// Length of the longest suffix of `text` that is a prefix of `stop`.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(TokenizerPtr tokenizer, std::vector<std::string> stop,
                       std::span<const int32_t> before)
    : tokenizer_(std::move(tokenizer)), stop_(std::move(stop)) {
  const auto context = before.last(std::min(before.size(), kContext));
  ids_.assign(context.begin(), context.end());
  read_ = ids_.size();
}

// Appends the text of new ids to held_.
void TextStream::read_new(bool all) {
  const std::span<const int32_t> ids(ids_);
  const std::string known = tokenizer_->decode(ids.subspan(from_, read_ - from_));
  const std::string text = tokenizer_->decode(ids.subspan(from_));
  const bool complete = !ends_within_character(text);
  if (text.size() <= known.size() || !(complete || all)) return;
  held_ += text.substr(known.size());
  from_ = read_, read_ = ids_.size();
}

std::string TextStream::give(bool all) {
  if (stopped_) return {};
  size_t end = held_.size();
  for (const std::string& stop : stop_) end = std::min(end, held_.find(stop));
  stopped_ = end < held_.size();
  if (!stopped_ && !all) {
    for (const std::string& stop : stop_) end = std::min(end, held_.size() - begun(held_, stop));
  }
  std::string text = held_.substr(0, end);
  held_.erase(0, end);
  return text;
}

std::string TextStream::add(int32_t id) {
  ids_.push_back(id);
  read_new(false);
  return give(false);
}

std::string TextStream::finish() {
  read_new(true);
  return give(true);
}

}  // namespace heed
