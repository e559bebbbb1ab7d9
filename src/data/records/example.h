// From a record's text to the ids that the token store keeps: two lists an example.
//
// | objective | first | second |
// | --- | --- | --- |
// | translation, parsing | the source, as its template has it | the target, ended |
// | causal_lm | a document, begun and ended | – |
// | masked_lm, span_corruption, denoising | a document's text alone | where its sentences begin |
// | classification, regression | the text or pair in its template | where type 1 begins; the class,
// or the score's bits | | tagging | the sentence in its template | an id's class, or kIgnoreLabel |
//
// Classes are numbered by the corpus (corpus.h): here they are places in `labels`.
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
  bool truncated = false;
};

// Safe to use from many threads.
class ExampleEncoder {
 public:
  // Borrows the tokenizer. Throws invalid_argument when it lacks a token that is needed.
  ExampleEncoder(const Tokenizer& tokenizer, const CorpusOptions& corpus,
                 const ObjectiveOptions& objective, const FilterOptions& filters);

  EncodedExample encode(const Record& record) const;

 private:
  void encode_pair(const Record& record, EncodedExample& example) const;
  void encode_document(const Record& record, EncodedExample& example) const;
  void encode_labelled(const Record& record, EncodedExample& example) const;
  void encode_tagged(const Record& record, EncodedExample& example) const;
  void check_lengths(EncodedExample& example) const;
  // Takes ids away from the end of the longer text until max_tokens are left.
  bool truncate(Encoding& encoding) const;

  const Tokenizer& tokenizer_;
  CorpusOptions corpus_;
  ObjectiveOptions objective_;
  FilterOptions filters_;
  RoleIds ids_;
  std::optional<int32_t> target_prefix_;
};

// Whether the objective looks at the sentences of a document.
bool needs_sentences(const ObjectiveOptions& objective);

}  // namespace heed
