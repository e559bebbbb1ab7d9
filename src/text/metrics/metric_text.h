// Python's text functions: sacreBLEU's scores depend on its "white space" and "lower case".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

// A text's code points and back; invalid bytes are separate code points (utf8.h).
std::u32string code_points(std::string_view text);
std::string to_utf8(std::u32string_view characters);

// str.isspace() for one character: Unicode's White_Space and four more control characters.
bool is_python_space(char32_t c);
// str.rstrip() and str.strip()
std::string_view strip_end(std::string_view text);
std::string_view strip(std::string_view text);
// str.split(): views into `text`.
std::vector<std::string_view> split_words(std::string_view text);
// str.lower(): Unicode's full mapping, the same in every locale.
std::string lower(std::string_view text);

// str.replace(): every `from`, left to right.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace heed
