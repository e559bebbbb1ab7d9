#include "infer/engine/output_check.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace heed {
namespace {

// Sources of fewer tokens have translations of any length.
constexpr int64_t kFewestTokens = 20;

// A translation of less than this fraction of its source, or of more than this multiple, is wrong:
// in tokens and in bytes.
constexpr double kShortestTokens = 0.45, kShortestBytes = 0.4;
constexpr double kLongest = 3;

// Bytes of the longest run of repetitions: at least three times the same, of up to kLongestPeriod
// bytes. 24 bytes are "sehr, sehr, sehr, sehr, sehr".
constexpr size_t kLongestPeriod = 64, kFewestRepeatedBytes = 24;

size_t longest_loop(std::string_view text) {
  size_t longest = 0;
  for (size_t period = 1; period <= std::min(kLongestPeriod, text.size() / 3); ++period) {
    size_t run = 0;
    for (size_t i = period; i < text.size(); ++i) {
      run = text[i] == text[i - period] ? run + 1 : 0;
      if (run >= 2 * period) longest = std::max(longest, run);
    }
  }
  return longest;
}

// The fraction of word trigrams that occurred before; 0 for short texts.
double repeated_trigrams(std::string_view text) {
  constexpr size_t kFewestWords = 16;
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(' ', at);
    if (begin == text.npos) break;
    at = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, at - begin));
  }
  if (words.size() < kFewestWords) return 0;
  std::unordered_set<std::string> seen;
  size_t repeated = 0;
  for (size_t i = 2; i < words.size(); ++i) {
    std::string trigram;
    for (size_t k = i - 2; k <= i; ++k) trigram.append(words[k]).append(" ");
    if (!seen.insert(std::move(trigram)).second) ++repeated;
  }
  return static_cast<double>(repeated) / static_cast<double>(words.size() - 2);
}

bool repeats(std::string_view source, std::string_view target) {
  constexpr double kManyTrigrams = 0.4;
  const size_t loop = longest_loop(target);
  if (loop >= kFewestRepeatedBytes && loop > 2 * longest_loop(source) + kFewestRepeatedBytes) {
    return true;
  }
  const double trigrams = repeated_trigrams(target);
  return trigrams > kManyTrigrams && trigrams > 2 * repeated_trigrams(source);
}

}  // namespace

TranslationWarning check_output(const CheckedOutput& output) {
  const auto tokens = static_cast<double>(output.source_tokens);
  const auto new_tokens = static_cast<double>(output.target_tokens);
  const auto bytes = static_cast<double>(output.source.size());
  const auto new_bytes = static_cast<double>(output.target.size());
  if (repeats(output.source, output.target)) return TranslationWarning::repetition;
  if (output.reached_requested) return TranslationWarning::none;
  const bool is_long = new_tokens > kLongest * tokens && new_bytes > kLongest * bytes;
  if (output.reached_default || (is_long && new_tokens >= kFewestTokens)) {
    return TranslationWarning::too_long;
  }
  const bool is_short = new_tokens < kShortestTokens * tokens && new_bytes < kShortestBytes * bytes;
  if (is_short && output.source_tokens >= kFewestTokens) return TranslationWarning::too_short;
  return TranslationWarning::none;
}

}  // namespace heed
