// Hand-written matchers for the split patterns of GPT-2, Llama 3 and Qwen 2, which most tokenizers
// use: one pass, no backtracking. Other patterns use PCRE2.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heed {

// The end of the piece that begins at byte `at`, which must be less than text.size(). These
// patterns match everywhere: pieces are contiguous. An invalid byte is neither space nor letter nor
// number.
using PieceEnd = size_t (*)(std::string_view text, size_t at);

size_t gpt2_piece_end(std::string_view text, size_t at);
size_t llama3_piece_end(std::string_view text, size_t at);  // numbers: three digits at a time
size_t qwen2_piece_end(std::string_view text, size_t at);   // the same, one digit at a time

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// The matcher for a pattern of tokenizer.json; null: use PCRE2.
PieceEnd find_split_pattern(std::string_view pattern);

}  // namespace heed
