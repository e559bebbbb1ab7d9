// Trains SentencePiece models with the library's trainer.
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heed/error.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/spiece_model.h"
#include "text/tokenizers/spiece_tokenizer.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/training/tokenizer_training.h"
#include "text/training/training_lines.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// The trainer is partly quadratic in the length of a line; a longer line is not a sentence.
constexpr size_t kMaxSentenceBytes = 100'000;
// The trainer's num_threads. Sums of floats depend on it, so it is constant and not the requested
// number of threads.
constexpr const char* kShares = "16";

// Minimum character_coverage: the fraction of a text's characters that become pieces; others are
// unknown and lost in decoding. SentencePiece's default, for scripts with thousands of characters.
// With fewer characters, as in most languages, rare digits and capitals of a small corpus would be
// excluded: then all become pieces.
constexpr double kLeastCoverage = 0.9995;
// All characters become pieces if they take at most 1 / kCharacterPart of the vocabulary.
constexpr int64_t kCharacterPart = 8;

// The lines for the library; each is valid until the next one is read.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  Sentences(TrainingLines& lines, TokenizerTrainingReport& report) {
    for (std::string line; lines.next(line);) {
      if (line.size() > kMaxSentenceBytes) {
        ++report.skipped_lines;
        continue;
      }
      for (size_t at = 0; at < line.size();) {
        const CodePoint c = decode_utf8(line, at);
        ++characters_[c.value];
        at += c.bytes;
      }
      lines_.push_back(std::move(line));
      line.clear();
    }
  }

  bool done() const override { return lines_.empty(); }
  const std::string& value() const override { return lines_.front(); }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override { lines_.pop_front(); }

  // The character_coverage for a vocabulary of that size.
  double coverage(int64_t vocabulary) const {
    std::vector<int64_t> counts;
    for (const auto& [character, count] : characters_) counts.push_back(count);
    const int64_t kept = std::min(vocabulary / kCharacterPart, std::ssize(counts));
    std::partial_sort(counts.begin(), counts.begin() + kept, counts.end(), std::greater<>());
    const auto sum = [&](int64_t n) {
      return std::accumulate(counts.begin(), counts.begin() + n, int64_t{0});
    };
    if (kept == std::ssize(counts)) return 1;
    return std::max(kLeastCoverage,
                    static_cast<double>(sum(kept)) / static_cast<double>(sum(std::ssize(counts))));
  }

 private:
  std::deque<std::string> lines_;
  std::unordered_map<char32_t, int64_t> characters_;
};

// The library parses lists as CSV.
std::string as_csv(const std::vector<std::string>& values) {
  std::string csv;
  for (const std::string& value : values) {
    if (!csv.empty()) csv += ',';
    csv += '"';
    for (const char c : value) {
      if (c == '"') csv += '"';
      csv += c;
    }
    csv += '"';
  }
  return csv;
}

// "… Vocabulary size too high (8000). Please set it to a value <= 412." and the like.
[[noreturn]] void throw_failure(const std::string& message, const TokenizerTraining& training) {
  const auto number_after = [&message](const std::string& words) {
    const size_t at = message.find(words);
    if (at == std::string::npos) return std::string();
    const size_t begin = at + words.size();
    return message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
  };
  const std::string requested = "a vocabulary of " + std::to_string(training.vocabulary);
  if (const std::string most = number_after("set it to a value <= "); !most.empty()) {
    throw Error(ErrorCode::invalid_argument,
                requested + " is too large for this text, which allows at most " + most,
                "use a vocabulary of at most " + most + ", or more text");
  }
  if (message.find("smaller than required_chars") != std::string::npos) {
    const std::string needed = number_after(" vs ");
    throw Error(
        ErrorCode::invalid_argument,
        requested + " is too small for the characters of this text" +
            (needed.empty() ? "" : ", which need " + needed),
        "use a larger vocabulary, or --type byte-bpe, which needs 256 characters for any text");
  }
  throw Error(ErrorCode::invalid_argument, "the tokenizer cannot be trained: " + message);
}

}  // namespace

TokenizerPtr train_spiece(const TokenizerTraining& training, TokenizerTrainingReport& report) {
  TrainingLines lines(training, TrainingLines::Invalid::repaired, report);
  Sentences sentences(lines, report);
  if (sentences.done()) lines.check_not_empty();
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", training.type},
      {"vocab_size", std::to_string(training.vocabulary)},
      {"character_coverage", std::to_string(sentences.coverage(training.vocabulary))},
      {"normalization_rule_name", training.lowercase ? "nmt_nfkc_cf" : "nmt_nfkc"},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"unk_id", "2"},
      {"bos_id", "-1"},
      {"max_sentence_length", std::to_string(kMaxSentenceBytes + 1)},
      {"num_threads", kShares},
      {"minloglevel", "4"},
  };
  std::vector<std::string> symbols = training.special_tokens;
  symbols.insert(symbols.end(), training.user_symbols.begin(), training.user_symbols.end());
  if (!symbols.empty()) settings["user_defined_symbols"] = as_csv(symbols);
  if (training.byte_fallback) settings["byte_fallback"] = "true";
  if (training.split_digits) settings["split_digits"] = "true";
  silence_sentencepiece();
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &bytes);
  if (!status.ok()) throw_failure(status.message(), training);

  nlohmann::ordered_json config = {{"tokenizer_class", "T5Tokenizer"},
                                   {"extra_ids", 0},
                                   {"legacy", false},
                                   {"pad_token", "<pad>"},
                                   {"eos_token", "</s>"},
                                   {"unk_token", "<unk>"},
                                   {"model_max_length", kNoMaxLength}};
  if (!training.special_tokens.empty()) {
    config["additional_special_tokens"] = training.special_tokens;
  }
  return make_spiece_tokenizer(bytes, config);
}

}  // namespace heed
