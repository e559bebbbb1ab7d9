// The subword models of tokenizer.json (BPE, WordPiece, Unigram, WordLevel): a word to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer_json/json_node.h"
#include "text/tokenizer_json/vocabulary.h"

namespace heed {

// Collects ids and, if requested, their spans.
struct IdSink {
  struct Span {
    uint32_t begin = 0, end = 0;  // bytes of the text that the word is part of
  };
  std::vector<int32_t> ids;
  std::vector<Span> spans;  // one per id, if requested
  bool wants_spans = false;

  void add(int32_t id, size_t begin, size_t end) {
    ids.push_back(id);
    if (wants_spans) spans.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;

  // Appends the ids of text[begin, end). Thread-safe.
  virtual void encode(std::string_view text, size_t begin, size_t end, IdSink& out) const = 0;
  // Whether it encodes words given as raw bytes although its vocabulary uses the byte alphabet.
  virtual bool takes_byte_alphabet() const { return false; }
  virtual void take_bytes() {}

  const Vocabulary& vocabulary() const { return vocabulary_; }
  int32_t unknown_id() const { return unknown_id_; }  // -1: none

 protected:
  Vocabulary vocabulary_;
  int32_t unknown_id_ = -1;
};

// Each reads the object under "model". Throws corrupt_file.
std::unique_ptr<SubwordModel> read_bpe(const JsonNode& node);
std::unique_ptr<SubwordModel> read_wordpiece(const JsonNode& node);
std::unique_ptr<SubwordModel> read_unigram(const JsonNode& node);
std::unique_ptr<SubwordModel> read_word_level(const JsonNode& node);
// The model that "type" names (older files may omit it). Throws unsupported for an unknown type.
std::unique_ptr<SubwordModel> read_subword_model(const JsonNode& node);

}  // namespace heed
