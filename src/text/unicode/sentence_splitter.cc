#include "text/unicode/sentence_splitter.h"

#include <unicode/ubrk.h>
#include <unicode/utext.h>

#include <memory>

#include "base/check.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// "ss=standard": a full stop after "Mr" and the like does not end a sentence.
constexpr const char* kLocale = "en@ss=standard";

// Without the white space at both ends.
TextSpan trimmed(std::string_view text, size_t begin, size_t end) {
  size_t first = end, last = end;  // of what is not white space
  for (size_t at = begin; at < end;) {
    const CodePoint c = decode_utf8(text, at);
    const size_t next = at + c.bytes;
    if (!is_space(c.value)) {
      if (first == end) first = at;
      last = next;
    }
    at = next;
  }
  return {static_cast<int64_t>(first), static_cast<int64_t>(first == end ? end : last)};
}

}  // namespace

std::vector<TextSpan> split_sentences(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UText, decltype(&utext_close)> source(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status),
      &utext_close);
  const std::unique_ptr<UBreakIterator, decltype(&ubrk_close)> breaks(
      ubrk_open(UBRK_SENTENCE, kLocale, nullptr, 0, &status), &ubrk_close);
  ubrk_setUText(breaks.get(), source.get(), &status);
  HEED_CHECK(U_SUCCESS(status),
             std::string("ICU must have sentence break data: ") + u_errorName(status));
  std::vector<TextSpan> sentences;
  int32_t begin = ubrk_first(breaks.get());
  for (int32_t end = ubrk_next(breaks.get()); end != UBRK_DONE; end = ubrk_next(breaks.get())) {
    const TextSpan span = trimmed(text, static_cast<size_t>(begin), static_cast<size_t>(end));
    if (span.begin < span.end) sentences.push_back(span);
    begin = end;
  }
  return sentences;
}

}  // namespace heed
