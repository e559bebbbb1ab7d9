// Splits a text at special tokens: "Fill <extra_id_0> in" is text, one id, text.
//
// Leftmost, longest match before normalization, as in Hugging Face's Python tokenizers. A token may
// strip the white space beside it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct SpecialToken {
  std::string text;
  int32_t id = -1;
  bool strip_left = false, strip_right = false;  // white space before and after it is dropped
};

class SpecialTokens {
 public:
  struct Part {  // bytes [begin, end) of the text; id -1: ordinary text, never empty
    size_t begin = 0, end = 0;
    int32_t id = -1;
  };

  SpecialTokens() = default;
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  // The parts in order; stripped white space is in none.
  std::vector<Part> split(std::string_view text) const;

  const std::vector<SpecialToken>& tokens() const { return tokens_; }
  bool has(int32_t id) const;

 private:
  const SpecialToken* longest_at(std::string_view text, size_t position) const;

  std::vector<SpecialToken> tokens_;  // longest first
  std::array<std::vector<int32_t>, 256> by_first_byte_;
};

}  // namespace heed
