// Names of files that a file from outside gives.
#pragma once

#include <string_view>

namespace heed {

// Whether it is the name of something in the same folder. Anything else ("../x", "/dev/zero") would
// make Heed read a file of another's choice.
inline bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace heed
