// Tokenizers: text to ids and back.
//
//   auto tokenizer = heed::load_tokenizer("models/en-de");     // a model folder or one file
//   heed::Encoding e = tokenizer->encode("Hello world");       // e.ids, e.offsets
//   std::string text = tokenizer->decode(e.ids);
//
// Text is UTF-8. Invalid bytes are never an error: byte-level tokenizers keep them, others replace
// them by U+FFFD. A loaded tokenizer is immutable and thread-safe.
// Loading throws heed::Error: not_found, corrupt_file or unsupported.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// Bytes [begin, end) of the text that was encoded.
struct TextSpan {
  int64_t begin = 0, end = 0;

  bool operator==(const TextSpan&) const = default;
};

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<TextSpan> offsets;  // one per id; empty spans for added special tokens
  std::vector<int32_t> types;     // token types, one per id: 0, and 1 for the second text of a pair
  std::vector<uint8_t> is_special;  // one per id: 1 for tokens of the template around the text
};

// The side of a tokenizer with two vocabularies (Marian's source.spm and target.spm).
enum class TextSide { source, target };

struct EncodeOptions {
  bool special_tokens = true;  // add those of the model's template
  TextSide side = TextSide::source;
};

struct DecodeOptions {
  bool skip_special_tokens = true;
  TextSide side = TextSide::target;
};

// Ids of special tokens; -1: none.
struct SpecialIds {
  int32_t pad = -1, unknown = -1, begin = -1, end = -1;
  int32_t classify = -1, separate = -1, mask = -1;  // BERT's [CLS], [SEP], [MASK]
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual Encoding encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  // Two texts in one sequence, joined by the model's template.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const = 0;
  // The ids of encode(), without computing the offsets.
  virtual std::vector<int32_t> encode_ids(std::string_view text,
                                          const EncodeOptions& options = {}) const = 0;
  // Ids outside the vocabulary throw invalid_argument.
  virtual std::string decode(std::span<const int32_t> ids,
                             const DecodeOptions& options = {}) const = 0;

  virtual int64_t vocabulary_size() const = 0;  // ids are 0 … vocabulary_size() - 1
  virtual std::string piece(int32_t id) const = 0;
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual const SpecialIds& special_ids() const = 0;
  // Whether the token begins a word; for whole-word masking and tagging.
  virtual bool begins_word(int32_t id) const = 0;

  // Writes the files that load_tokenizer() and Hugging Face's tools read into a model folder.
  virtual void save(const std::string& folder) const = 0;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

// From a model folder, or from one file: tokenizer.json, *.model, *.spm, vocab.txt, merges.txt.
TokenizerPtr load_tokenizer(const std::string& path);
// "byte" (ByT5: byte + 3) or "char" (printable ASCII, tab and newline), which need no file; throws
// invalid_argument for other types.
TokenizerPtr make_tokenizer(const std::string& type);

struct TokenizerTraining {
  std::string type = "bpe";  // bpe, unigram, byte-bpe, wordpiece, char or byte
  int64_t vocabulary = 8000;
  std::vector<std::string> files{};  // plain text, .gz or .zst: one sentence per line
  bool lowercase = false;
  std::vector<std::string> special_tokens{};  // beyond the type's own
  // bpe and unigram only:
  std::vector<std::string> user_symbols{};  // always one piece each, and part of decoded text
  bool byte_fallback = false;  // unknown characters become pieces of their bytes (<0x0A> …)
  bool split_digits = false;   // each digit is a piece
  int threads = 0;             // 0: every CPU; the result is the same for any number
  // Called now and then with the phase and the fraction done (0 … 1; -1: unknown).
  std::function<void(std::string_view phase, double done)> progress{};
};

// Statistics of the files.
struct TokenizerTrainingReport {
  int64_t lines = 0, bytes = 0;
  int64_t empty_lines = 0;    // only white space
  int64_t invalid_lines = 0;  // invalid UTF-8, replaced by U+FFFD (byte-bpe: kept)
  int64_t skipped_lines = 0;  // bpe and unigram: too long for the trainer
};

// Trains a tokenizer; save() it into a folder. Deterministic: the same files and settings give the
// same tokenizer.
//   bpe, unigram   by SentencePiece. <pad> 0, </s> 1, <unk> 2, as in T5, then special_tokens; </s> is
//                  appended to a text. spiece.model, tokenizer_config.json.
//   byte-bpe       as GPT-2: any bytes, <|endoftext|> 0, no special tokens around a text.
//                  tokenizer.json, vocab.json, merges.txt.
//   wordpiece      as BERT: [PAD] 0, [UNK], [CLS], [SEP], [MASK]. tokenizer.json, vocab.txt.
//   char           all characters, or the most frequent ones that fit into `vocabulary`.
//   byte           ByT5's, with special_tokens after its own; needs no files.
// Throws invalid_argument when the files have no text, or when the vocabulary is larger than the text
// allows or smaller than its characters; not_found and corrupt_file for the files.
TokenizerPtr train_tokenizer(const TokenizerTraining& training,
                             TokenizerTrainingReport* report = nullptr);

}  // namespace heed
