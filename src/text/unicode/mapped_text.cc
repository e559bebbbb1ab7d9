#include "text/unicode/mapped_text.h"

#include "text/unicode/utf8.h"

namespace heed {

MappedText map_repaired(std::string_view text) {
  MappedText result;
  if (is_utf8(text)) {
    result.text = text;
    return result;
  }
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (!is_stray_byte(c.value)) {
      result.text += text.substr(at, c.bytes);
      for (size_t i = 0; i < c.bytes; ++i) result.source.push_back(static_cast<int64_t>(at + i));
      at += c.bytes;
    } else {
      append_utf8(result.text, kReplacementCharacter);
      result.source.resize(result.text.size(), static_cast<int64_t>(at));
      at += broken_bytes(text, at);
    }
  }
  result.source.push_back(static_cast<int64_t>(text.size()));
  return result;
}

MappedText map_replaced(MappedText text, std::string_view from, std::string_view to,
                        std::string_view prefix) {
  if (prefix.empty() && text.text.find(from) == std::string::npos) return text;
  MappedText result;
  result.text = prefix;
  result.source.resize(prefix.size(), 0);
  for (size_t at = 0; at < text.text.size();) {
    if (std::string_view(text.text).substr(at).starts_with(from)) {
      result.text += to;
      result.source.resize(result.text.size(), text.source_position(at));
      at += from.size();
    } else {
      result.text += text.text[at];
      result.source.push_back(text.source_position(at));
      ++at;
    }
  }
  result.source.push_back(text.source_position(text.text.size()));
  return result;
}

}  // namespace heed
