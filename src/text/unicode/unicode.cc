#include "text/unicode/unicode.h"

#include <unicode/uchar.h>

#include "text/unicode/utf8.h"

namespace heed {
namespace {

bool has_category(char32_t c, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0;
}

}  // namespace

namespace unicode_detail {

bool is_letter(char32_t c) { return has_category(c, U_GC_L_MASK); }
bool is_number(char32_t c) { return has_category(c, U_GC_N_MASK); }
bool is_space(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0; }
bool is_punctuation(char32_t c) { return has_category(c, U_GC_P_MASK); }

}  // namespace unicode_detail

bool is_mark(char32_t c) { return has_category(c, U_GC_M_MASK); }
bool is_nonspacing_mark(char32_t c) { return has_category(c, U_GC_MN_MASK); }

bool is_word_character(char32_t c) {
  if (c < 128) {
    const uint8_t kind = unicode_detail::kAscii[c];
    return kind == unicode_detail::kLetter || kind == unicode_detail::kNumber || c == '_';
  }
  return has_category(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_isUAlphabetic(static_cast<UChar32>(c)) || c == 0x200C || c == 0x200D;
}

void append_lower(std::string& out, char32_t c) {
  constexpr char32_t kDottedCapitalI = 0x130, kCombiningDotAbove = 0x307;
  if (is_stray_byte(c)) {
    append_utf8(out, c);
  } else if (c == kDottedCapitalI) {
    out.push_back('i');
    append_utf8(out, kCombiningDotAbove);
  } else {
    append_utf8(out, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  }
}

}  // namespace heed
