#include "base/text/number_text.h"

#include <algorithm>
#include <charconv>

namespace heed {
namespace {

// std::to_chars and not printf: the same text in every locale.
template <class... Arguments>
std::string text_of(Arguments... arguments) {
  char text[400];  // the largest double has 309 digits before the point
  return std::string(text, std::to_chars(text, text + sizeof text, arguments...).ptr);
}

}  // namespace

std::string significant(double value, int digits) {
  return text_of(value, std::chars_format::general, std::clamp(digits, 1, 17));
}

std::string fixed(double value, int decimals) {
  return text_of(value, std::chars_format::fixed, std::clamp(decimals, 0, 20));
}

std::string shortest(double value) { return text_of(value); }
std::string shortest(float value) { return text_of(value); }

std::string megabytes(int64_t bytes) {
  constexpr int64_t kWholeFrom = 100'000'000;
  return fixed(static_cast<double>(bytes) / 1e6, bytes < kWholeFrom ? 1 : 0) + " MB";
}

}  // namespace heed
