// File names read from untrusted files.
#pragma once

#include <string_view>

namespace heed {

// Whether `name` is a file in the same folder. Anything else ("../x", "/dev/zero") would let an
// untrusted file choose which file Heed reads.
inline bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace heed
