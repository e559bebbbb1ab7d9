// Values in the tables of a sweep.
#pragma once

#include <string>

namespace heed {

// A TOML value without quotes.
inline std::string cell_text(const std::string& value) {
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.front() == value.back();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace heed
