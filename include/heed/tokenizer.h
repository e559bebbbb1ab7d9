// Text to ids and back.
//
//   auto tokenizer = heed::load_tokenizer("models/en-de");     // a model folder or one file
//   heed::Encoding e = tokenizer->encode("Hello world");       // e.ids, e.offsets
//   std::string text = tokenizer->decode(e.ids);
//
// Text is UTF-8. Bytes that are not are never an error: byte-level tokenizers keep them, others
// read U+FFFD in their place. A loaded tokenizer is immutable and safe to use from many threads.
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
  std::vector<TextSpan> offsets;    // one an id; special tokens that were added: empty spans
  std::vector<int32_t> types;       // one an id: 0, and 1 for the second text of a pair
  std::vector<uint8_t> is_special;  // one an id: 1 for what was added around the text
};

// Which language's side a tokenizer with two (Marian's source.spm and target.spm) reads.
enum class TextSide { source, target };

struct EncodeOptions {
  bool special_tokens = true;  // those that the model's own template adds
  TextSide side = TextSide::source;
};

struct DecodeOptions {
  bool skip_special_tokens = true;
  TextSide side = TextSide::target;
};

// Ids with a meaning; -1: the tokenizer has none.
struct SpecialIds {
  int32_t pad = -1, unknown = -1, begin = -1, end = -1;
  int32_t classify = -1, separate = -1, mask = -1;  // BERT's [CLS], [SEP], [MASK]
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual Encoding encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  // Two texts in one sequence, as the model's template joins them.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const = 0;
  // The same ids as encode(), without the cost of the rest.
  virtual std::vector<int32_t> encode_ids(std::string_view text,
                                          const EncodeOptions& options = {}) const = 0;
  // Ids outside the vocabulary throw invalid_argument.
  virtual std::string decode(std::span<const int32_t> ids,
                             const DecodeOptions& options = {}) const = 0;

  virtual int64_t vocabulary_size() const = 0;  // ids are 0 … vocabulary_size() - 1
  virtual std::string piece(int32_t id) const = 0;
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual const SpecialIds& special_ids() const = 0;
  // True where the text's words begin: whole-word masking and tagging look at it.
  virtual bool begins_word(int32_t id) const = 0;

  // Writes the files that load_tokenizer() and the ecosystem's tools read into a model folder.
  virtual void save(const std::string& folder) const = 0;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

// From a model folder, or from one file: tokenizer.json, *.model, *.spm, vocab.txt, merges.txt.
TokenizerPtr load_tokenizer(const std::string& path);
// "byte" (ByT5: byte + 3) and "char" (ASCII's visible characters, tab and newline) need no file;
// other names throw invalid_argument.
TokenizerPtr make_tokenizer(const std::string& type);

struct TokenizerTraining {
  std::string type = "bpe";  // bpe, unigram, byte-bpe, wordpiece, char or byte
  int64_t vocabulary = 8000;
  std::vector<std::string> files{};  // plain text, .gz or .zst: one sentence a line
  bool lowercase = false;
  std::vector<std::string> special_tokens{};  // beyond the type's own
  int threads = 0;                            // 0: every CPU; the result is the same for any number
  // Told what is going on, and how much of it is done (0 … 1; -1: not known), now and then.
  std::function<void(std::string_view phase, double done)> progress{};
};

// What was in the files.
struct TokenizerTrainingReport {
  int64_t lines = 0, bytes = 0;
  int64_t empty_lines = 0;    // nothing but white space
  int64_t invalid_lines = 0;  // not UTF-8: read with U+FFFD for what is not (byte-bpe: as it is)
  int64_t skipped_lines = 0;  // bpe and unigram: longer than the trainer takes
};

// Returns what was trained; save() it into a folder. The same files and settings give the same
// tokenizer, bit for bit.
//   bpe, unigram   by SentencePiece. <pad> 0, </s> 1, <unk> 2, as T5 has them, then special_tokens;
//                  </s> is appended to a text. spiece.model, tokenizer_config.json.
//   byte-bpe       as GPT-2: any bytes, <|endoftext|> 0, nothing around a text. tokenizer.json,
//                  vocab.json, merges.txt.
//   wordpiece      as BERT: [PAD] 0, [UNK], [CLS], [SEP], [MASK]. tokenizer.json, vocab.txt.
//   char           every character, the most frequent first when there are more than `vocabulary`.
//   byte           needs no files: ByT5's, with special_tokens behind its own.
// Throws invalid_argument: no text in the files, or a vocabulary larger than the text can give, or
// smaller than the characters need; not_found and corrupt_file for the files themselves.
TokenizerPtr train_tokenizer(const TokenizerTraining& training,
                             TokenizerTrainingReport* report = nullptr);

}  // namespace heed
