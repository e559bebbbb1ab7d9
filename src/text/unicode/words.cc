#include "text/unicode/words.h"

#include <unicode/ubrk.h>
#include <unicode/utext.h>

#include <memory>
#include <string>

#include "base/check.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {

std::vector<TextSpan> word_spans(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UText, decltype(&utext_close)> source(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status),
      &utext_close);
  const std::unique_ptr<UBreakIterator, decltype(&ubrk_close)> breaks(
      ubrk_open(UBRK_WORD, "en", nullptr, 0, &status), &ubrk_close);
  ubrk_setUText(breaks.get(), source.get(), &status);
  HEED_CHECK(U_SUCCESS(status),
             std::string("ICU must have word break data: ") + u_errorName(status));
  std::vector<TextSpan> words;
  int32_t begin = ubrk_first(breaks.get());
  for (int32_t end = ubrk_next(breaks.get()); end != UBRK_DONE; end = ubrk_next(breaks.get())) {
    if (!is_space(decode_utf8(text, static_cast<size_t>(begin)).value)) {
      words.push_back({begin, end});
    }
    begin = end;
  }
  return words;
}

}  // namespace heed
