#include "model/files/file_problems.h"

namespace heed {

namespace {

constexpr size_t kLongestQuote = 120;  // characters; real tensor names stay below

}  // namespace

void FileProblems::add(ErrorCode code, std::string problem) {
  if (count_ == 0) code_ = code;
  if (count_ < kShown) shown_.push_back(std::move(problem));
  ++count_;
}

void FileProblems::throw_if_any(const std::string& hint) const {
  if (count_ == 0) return;
  std::string message = file_ + ": ";
  if (count_ > 1) message += std::to_string(count_) + " problems: ";
  for (size_t i = 0; i < shown_.size(); ++i) {
    if (i > 0) message += "; ";
    message += shown_[i];
  }
  if (count_ > shown_.size())
    message += "; and " + std::to_string(count_ - shown_.size()) + " more";
  throw Error(code_, message, hint);
}

std::string in_quotes(std::string_view name) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string text = "'";
  for (const char c : name.substr(0, kLongestQuote)) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code >= 0x7f) {
      text += "\\x";
      text += kHexDigits[code >> 4];
      text += kHexDigits[code & 15];
    } else {
      text += c;
    }
  }
  text += name.size() > kLongestQuote ? "…'" : "'";
  return text;
}

}  // namespace heed
