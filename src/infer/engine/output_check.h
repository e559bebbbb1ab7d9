// Recognizes degenerate translations by comparing them with their source.
#pragma once

#include <string_view>

#include "heed/translate.h"

namespace heed {

struct CheckedOutput {
  std::string_view source, target;
  // With special tokens. Both measures must agree: neither tokens nor bytes alone are comparable
  // between languages.
  int64_t source_tokens = 0, target_tokens = 0;
  // The maximum length ended it: the default one, several times the length of the source, or one
  // that was requested, below which any length is right.
  bool reached_default = false, reached_requested = false;
};

TranslationWarning check_output(const CheckedOutput& output);

}  // namespace heed
