// Translates documents with markup: their blocks as plain texts, then the marks at aligned places.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/translate.h"

namespace heed {

// A text without markup; it borrows.
struct PlainText {
  std::string_view text;
  std::vector<TextSpan> fixed{};  // bytes that must not be translated; in order, disjoint
  std::vector<int64_t> cuts{};    // see protected_spans()
  bool needs_alignments = false;  // even if the options do not ask for them
  bool takes_prefix = true;       // its translation begins with TranslateOptions::prefix
};

struct PlainTranslation {
  Translation translation;
  std::vector<std::vector<Alignment>> alignments;  // of each alternative
  std::vector<std::vector<TextSpan>> placed;       // of each alternative: where `fixed` is
};

using OnPlain = std::function<void(size_t index, PlainTranslation&& translation)>;
// Calls the function for each text, in order.
using TranslatePlain =
    std::function<void(const std::vector<PlainText>& texts, const OnPlain& on_result)>;

// What Translator::translate() does if options.format is not text.
void translate_markup(const std::vector<std::string>& texts, const TranslateOptions& options,
                      const TranslatePlain& translate_plain,
                      const std::function<void(size_t index, Translation&& result)>& on_result);

}  // namespace heed
