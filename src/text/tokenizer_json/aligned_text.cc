#include "text/tokenizer_json/aligned_text.h"

namespace heed {

AlignedText::AlignedText(std::string_view source, size_t source_begin, bool align)
    : text(source), aligned(align) {
  if (!align) return;
  sources.resize(text.size());
  auto at = static_cast<uint32_t>(source_begin);
  for (SourceSpan& span : sources) {
    span = {at, at + 1};
    ++at;
  }
}

TextSpan AlignedText::source(size_t begin, size_t end) const {
  if (begin >= end) return {};
  return {sources[begin].begin, std::max(sources[begin].begin, sources[end - 1].end)};
}

void TextEdit::align(size_t begin, size_t end) {
  SourceSpan span;
  if (begin < end) {
    span = {from_.sources[begin].begin, from_.sources[end - 1].end};
  } else if (begin < from_.sources.size()) {
    span = {from_.sources[begin].begin, from_.sources[begin].begin};
  } else if (!from_.sources.empty()) {
    span = {from_.sources.back().end, from_.sources.back().end};
  }
  to_.sources.resize(to_.text.size(), span);
}

}  // namespace heed
