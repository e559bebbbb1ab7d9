// Encodes a record as the two id lists of the token store:
//
//   objective                               first                   second
//   translation, parsing                    the source              the target with its end token
//   causal_lm                               begin, document, end    –
//   masked_lm, span_corruption, denoising   the document's text     starts of its sentences
//   classification                          the text or pair        start of token type 1; the class
//   regression                              the text or pair        start of token type 1; the score's bits
//   tagging                                 the sentence            the class per id, or kIgnoreLabel
//
// Sources and texts to classify or tag include the special tokens of the tokenizer's template. The
// corpus numbers the classes (corpus.h): here they are indices in `labels`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/records/corpus_report.h"
#include "data/records/record_reader.h"
#include "data/records/role_ids.h"
#include "heed/tokenizer.h"

namespace heed {

struct EncodedExample {
  std::vector<int32_t> first, second;
  std::vector<std::string> labels;
  std::optional<Skip> skip;
  std::string why;  // of a malformed one
  bool truncated = false;
};

// Thread-safe.
class ExampleEncoder {
 public:
  // Keeps a reference to the tokenizer. Throws invalid_argument when it lacks a required token.
  ExampleEncoder(const Tokenizer& tokenizer, const CorpusOptions& corpus,
                 const ObjectiveOptions& objective, const FilterOptions& filters);

  EncodedExample encode(const Record& record) const;

 private:
  void encode_pair(const Record& record, EncodedExample& example) const;
  void encode_document(const Record& record, EncodedExample& example) const;
  void encode_labelled(const Record& record, EncodedExample& example) const;
  void encode_tagged(const Record& record, EncodedExample& example) const;
  void check_lengths(EncodedExample& example) const;
  // Truncates the longer text until max_tokens are left.
  bool truncate(Encoding& encoding) const;

  const Tokenizer& tokenizer_;
  CorpusOptions corpus_;
  ObjectiveOptions objective_;
  FilterOptions filters_;
  RoleIds ids_;
  std::optional<int32_t> target_prefix_;
};

// Whether the objective uses sentence boundaries.
bool needs_sentences(const ObjectiveOptions& objective);

}  // namespace heed
