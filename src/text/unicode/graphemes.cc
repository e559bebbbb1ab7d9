#include "text/unicode/graphemes.h"

#include <unicode/uchar.h>

#include "text/unicode/utf8.h"

namespace heed {
namespace {

int break_property(char32_t c) {
  return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK);
}

bool is_pictograph(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
}

bool is_control(int property) {
  return property == U_GCB_CONTROL || property == U_GCB_CR || property == U_GCB_LF;
}

// GB6 … GB8: the syllables of Hangul.
bool joins_syllable(int before, int after) {
  switch (before) {
    case U_GCB_L:
      return after == U_GCB_L || after == U_GCB_V || after == U_GCB_LV || after == U_GCB_LVT;
    case U_GCB_LV:
    case U_GCB_V:
      return after == U_GCB_V || after == U_GCB_T;
    case U_GCB_LVT:
    case U_GCB_T:
      return after == U_GCB_T;
    default:
      return false;
  }
}

}  // namespace

size_t grapheme_bytes(std::string_view text, size_t at) {
  const CodePoint first = decode_utf8(text, at);
  size_t bytes = first.bytes;
  int before = break_property(first.value);
  bool after_pictograph = is_pictograph(first.value);  // it, then any number of extenders
  bool after_joined_pictograph = false;                // and then a joiner
  bool odd_flags = before == U_GCB_REGIONAL_INDICATOR;
  while (at + bytes < text.size()) {
    const CodePoint next = decode_utf8(text, at + bytes);
    const int after = break_property(next.value);
    bool joined = false;
    // NOLINTNEXTLINE(bugprone-branch-clone): rule by rule, in the order of the standard
    if (before == U_GCB_CR && after == U_GCB_LF) {
      joined = true;  // GB3
    } else if (is_control(before) || is_control(after)) {
      joined = false;  // GB4, GB5
    } else if (after == U_GCB_EXTEND || after == U_GCB_ZWJ || after == U_GCB_SPACING_MARK ||
               before == U_GCB_PREPEND) {
      joined = true;  // GB9, GB9a, GB9b
    } else if (after_joined_pictograph && is_pictograph(next.value)) {
      joined = true;  // GB11: families of emoji
    } else if (after == U_GCB_REGIONAL_INDICATOR && odd_flags) {
      joined = true;  // GB12, GB13: flags are pairs
    } else {
      joined = joins_syllable(before, after);
    }
    if (!joined) break;
    after_joined_pictograph = after_pictograph && after == U_GCB_ZWJ;
    after_pictograph = is_pictograph(next.value) || (after_pictograph && after == U_GCB_EXTEND);
    odd_flags = after == U_GCB_REGIONAL_INDICATOR && !odd_flags;
    before = after;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace heed
