// Helpers shared by the tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heed/tokenizer.h"

namespace heed {

// Hugging Face's "no limit" for model_max_length in tokenizer_config.json.
constexpr int64_t kNoMaxLength = 1'000'000'000'000'000;

inline int64_t to_signed(size_t n) { return static_cast<int64_t>(n); }

inline void add_token(Encoding& encoding, int32_t id, TextSpan span, int32_t type = 0) {
  encoding.ids.push_back(id);
  encoding.offsets.push_back(span);
  encoding.types.push_back(type);
  encoding.is_special.push_back(0);
}

// A special token of the template: an empty span at `position`.
inline void add_special(Encoding& encoding, int32_t id, int64_t position, int32_t type = 0) {
  add_token(encoding, id, {position, position}, type);
  encoding.is_special.back() = 1;
}

// Appends `second` to `first` with token type `type`. Its offsets remain relative to its text.
void append_second(Encoding& first, const Encoding& second, int32_t type);

// Throws invalid_argument unless 0 <= id < vocabulary_size.
void check_id(int32_t id, int64_t vocabulary_size);

// Writes folder/name atomically; creates the folder if necessary.
void write_tokenizer_file(const std::string& folder, const std::string& name,
                          std::string_view content);

}  // namespace heed
