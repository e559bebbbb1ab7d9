// Where to cut a text that is too long for a translation model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "heed/translate.h"

namespace heed {

inline std::string_view part(std::string_view text, TextSpan span) {
  return text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

// The span without the white space at its ends.
TextSpan trimmed(std::string_view text, TextSpan span);

// Where to cut a span in two: after a clause, or else a word, or else a character; of these the one
// nearest to the middle, and never near an edge, which would leave the rest as long as before. -1 for
// a single character.
int64_t find_cut(std::string_view text, TextSpan span);

// The first run without white space that is too long for a word of any language, such as base64. It is
// data, which is copied.
std::optional<TextSpan> find_data(std::string_view text, TextSpan span);

// How long a piece may be. Borrows the model.
class PieceLimits {
 public:
  PieceLimits(const Model& model, const TranslateOptions& options);

  bool fits(std::string_view text) const;       // otherwise it must be cut
  bool can_halve(std::string_view text) const;  // if its translation failed

 private:
  int64_t count(std::string_view text) const;

  const Model& model_;
  int64_t most_tokens_;
};

}  // namespace heed
