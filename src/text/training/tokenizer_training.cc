#include "text/training/tokenizer_training.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text/suggest.h"
#include "heed/error.h"
#include "text/tokenizers/byte_tokenizer.h"
#include "text/tokenizers/char_tokenizer.h"
#include "text/training/training_lines.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

constexpr int64_t kMaxVocabulary = 4'000'000;

struct Trainer {
  const char* type;
  TokenizerPtr (*train)(const TokenizerTraining&, TokenizerTrainingReport&);
};

TokenizerPtr train_byte(const TokenizerTraining& training, TokenizerTrainingReport&) {
  return make_byte_tokenizer({.special_tokens = training.special_tokens});
}

constexpr Trainer kTrainers[] = {
    {"bpe", train_spiece},      {"unigram", train_spiece},      {"byte-bpe", train_byte_bpe},
    {"roberta", train_roberta}, {"wordpiece", train_wordpiece}, {"char", train_char},
    {"byte", train_byte},
};

void check_special_tokens(const TokenizerTraining& training) {
  std::set<std::string> seen;
  std::vector<std::string> tokens = training.special_tokens;
  tokens.insert(tokens.end(), training.user_symbols.begin(), training.user_symbols.end());
  for (const std::string& token : tokens) {
    const bool blank = token.find_first_not_of(" \t\r\n") == std::string::npos;
    if (blank || !is_utf8(token) || token.find('\0') != std::string::npos) {
      throw Error(ErrorCode::invalid_argument,
                  "a special token or user symbol must be UTF-8 and not empty");
    }
    if (!seen.insert(token).second) {
      throw Error(ErrorCode::invalid_argument,
                  "special tokens and user symbols must be unique, got " + token + " twice");
    }
  }
}

// The options that only SentencePiece's trainer has.
void check_spiece_options(const TokenizerTraining& training) {
  if (training.type == "bpe" || training.type == "unigram") return;
  for (const auto& [name, is_set] : {std::pair{"user_symbols", !training.user_symbols.empty()},
                                     std::pair{"byte_fallback", training.byte_fallback},
                                     std::pair{"split_digits", training.split_digits}}) {
    if (!is_set) continue;
    throw Error(
        ErrorCode::invalid_argument,
        std::string(name) + " needs a tokenizer of type bpe or unigram, got " + training.type);
  }
}

}  // namespace

TokenizerPtr train_char(const TokenizerTraining& training, TokenizerTrainingReport& report) {
  TrainingLines lines(training, TrainingLines::Invalid::repaired, report);
  std::unordered_map<char32_t, int64_t> counts;
  std::string line, lower;
  while (lines.next(line)) {
    line += '\n';
    for (size_t at = 0; at < line.size();) {
      const CodePoint c = decode_utf8(line, at);
      at += c.bytes;
      if (!training.lowercase) {
        ++counts[c.value];
        continue;
      }
      lower.clear();
      append_lower(lower, c.value);
      for (size_t i = 0; i < lower.size();) {
        const CodePoint l = decode_utf8(lower, i);
        ++counts[l.value];
        i += l.bytes;
      }
    }
  }
  lines.check_not_empty();
  counts.erase(kReplacementCharacter);  // replaces invalid bytes: unknown
  std::vector<std::pair<int64_t, char32_t>> order;
  for (const auto& [c, count] : counts) order.emplace_back(-count, c);
  std::sort(order.begin(), order.end());
  constexpr int64_t kOwn = 3;  // <pad>, </s>, <unk>
  const auto room =
      training.vocabulary - kOwn - static_cast<int64_t>(training.special_tokens.size());
  if (room < 1) {
    throw Error(ErrorCode::invalid_argument,
                "a vocabulary of " + std::to_string(training.vocabulary) +
                    " must have room for a character besides the special tokens");
  }
  if (static_cast<int64_t>(order.size()) > room) order.resize(static_cast<size_t>(room));
  CharTokenizerOptions options;
  for (const auto& [count, c] : order) options.characters.push_back(c);
  // In code point order.
  std::sort(options.characters.begin(), options.characters.end());
  options.special_tokens = training.special_tokens;
  options.lowercase = training.lowercase;
  return make_char_tokenizer(options);
}

TokenizerPtr train_tokenizer(const TokenizerTraining& training, TokenizerTrainingReport* report) {
  TokenizerTrainingReport own;
  TokenizerTrainingReport& counts = report ? *report : own;
  counts = {};
  if (training.vocabulary < 1 || training.vocabulary > kMaxVocabulary) {
    throw Error(ErrorCode::invalid_argument, "the vocabulary must be from 1 to " +
                                                 std::to_string(kMaxVocabulary) + ", got " +
                                                 std::to_string(training.vocabulary));
  }
  check_special_tokens(training);
  std::vector<std::string> types;
  for (const Trainer& trainer : kTrainers) {
    if (training.type == trainer.type) {
      check_spiece_options(training);
      return trainer.train(training, counts);
    }
    types.emplace_back(trainer.type);
  }
  std::string list;
  for (const std::string& type : types) list += (list.empty() ? "" : ", ") + type;
  const auto near = nearest(training.type, types);
  throw Error(ErrorCode::invalid_argument, "unknown tokenizer type '" + training.type + "'",
              near ? "did you mean '" + *near + "'?" : "one of: " + list);
}

}  // namespace heed
