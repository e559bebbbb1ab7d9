// Limits how deeply JSON may be nested.
//
// nlohmann's parser keeps its stack on the heap, but values are copied, compared and printed
// recursively: a file of a few hundred kilobytes of '[' would overflow the stack.
#pragma once

#include <string_view>

namespace heed {

// Far above any file that Heed reads.
inline constexpr int kDeepestJson = 100;

// Whether objects and lists are nested deeper than that. Accepts any bytes; allocates nothing.
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
