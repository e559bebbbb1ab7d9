// How deep JSON may be nested.
//
// The parser has its stack on the heap, but parsed values are copied, compared and printed by
// functions that call themselves: a file of a few hundred kilobytes of '[' would end the process.
#pragma once

#include <string_view>

namespace heed {

// No file that Heed reads comes near this.
inline constexpr int kDeepestJson = 100;

// Whether objects and lists stand in each other more often than that. Of any text; no memory.
inline bool is_too_deep_json(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace heed
