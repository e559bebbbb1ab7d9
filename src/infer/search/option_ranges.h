// Checks options against the ranges of their list.
#pragma once

#include <charconv>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/error.h"
#include "heed/search.h"

namespace heed {

// Shortest text that reads back as the same number.
template <class Number>
std::string shown_number(Number value) {
  char digits[64];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Adds "beam must be between 1 and 1024, got 0". The default is always valid; NaN never is.
template <class Field>
void check_range(const OptionInfo& info, const Field& field, const Field& standard,
                 std::vector<std::string>& problems) {
  const auto check = [&](auto number) {
    const auto value = static_cast<double>(number);
    if (value >= info.min && value <= info.max) return;
    const bool has_max = info.max < std::numeric_limits<double>::max();
    const auto end = [](double limit) { return shown_number(limit); };
    problems.push_back(std::string(info.name) + " must be " +
                       (has_max ? "between " + end(info.min) + " and " + end(info.max)
                                : "at least " + end(info.min)) +
                       ", got " + shown_number(number));
  };
  if constexpr (std::is_same_v<Field, LogitBias>) {
    for (const auto& [id, bias] : field) check(bias);
  } else if constexpr (std::is_arithmetic_v<Field> && !std::is_same_v<Field, bool>) {
    if (field != standard) check(field);
  }
}

inline void throw_problems(const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : "; ") + problem;
  throw Error(ErrorCode::invalid_argument, all, "change these options, or leave them out");
}

}  // namespace heed
