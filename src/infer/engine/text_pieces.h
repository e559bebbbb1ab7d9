// Cuts texts into pieces that a translation model can translate: sentences, and parts of those that
// are too long for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/translate.h"

namespace heed {

struct TextPiece {
  TextSpan span{};
  // Not a word of any language but data, such as base64: it is copied to the translation.
  bool is_copied = false;
};

inline std::string_view part(std::string_view text, TextSpan span) {
  return text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

class TextSplitter {
 public:
  // Borrows both.
  TextSplitter(const Model& model, const TranslateOptions& options);

  // In order; between the pieces is white space only. Linear in the text's tokens.
  std::vector<TextPiece> split(std::string_view text) const;

  // The two parts of a piece whose translation failed, or nothing when it is too short for that.
  std::optional<std::pair<TextSpan, TextSpan>> halves(std::string_view text, TextSpan span) const;

 private:
  void add_sentence(std::string_view text, TextSpan span, std::vector<TextPiece>& pieces) const;
  void add(std::string_view text, TextSpan span, std::vector<TextPiece>& pieces) const;
  bool fits(std::string_view text) const;
  int64_t count(std::string_view text) const;

  const Model& model_;
  const TranslateOptions& options_;
  int64_t most_tokens_;
};

}  // namespace heed
