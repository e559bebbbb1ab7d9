// Reads the examples of a corpus as text, for any file format.
//
//   auto reader = open_records({.files = {"train.en", "train.de"}}, Objective::translation);
//   Record record;
//   while (reader->next(record)) use(record.first, record.second);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/records/corpus_report.h"

namespace heed {

struct Record {
  std::string first, second;          // the texts; `second` only of pairs
  bool has_second = false;            // also true for an empty second text
  std::string label;                  // of a text to classify; the number of a regression
  std::vector<std::string> words;     // tagging: the sentence's words …
  std::vector<std::string> tags;      // … and their classes
  std::vector<size_t> sentences;      // starts of the sentences of `first`, except the first
  bool ends_document = true;          // false: the file continues in the next record
  std::optional<Skip> skip;           // set when the reader rejects it
  std::string why;                    // of a malformed one: what was expected and found
  const std::string* file = nullptr;  // its file, owned by the reader
  int64_t line = 0;                   // its first line

  std::string where() const;        // "train.en:17"
  std::string place() const;        // the same, and of a malformed one the reason
  void reject(std::string reason);  // malformed
  void clear();
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // False at the end. Throws corrupt_file for an invalid file, and invalid_argument when two parallel
  // files have different numbers of lines.
  virtual bool next(Record& record) = 0;

  // Bytes of all files on disk (compressed), and those read so far.
  virtual int64_t bytes_read() const = 0;
};

// Resolves `automatic` by the file names.
CorpusFormat format_of(const CorpusOptions& corpus, Objective objective);

// Throws not_found and invalid_argument for missing files, folders, formats that do not support the
// objective, and missing columns.
std::unique_ptr<RecordReader> open_records(const CorpusOptions& corpus, Objective objective,
                                           const FilterOptions& filters = {});

// The starts of the sentences of a line, except the first: after . ! or ? (and closing quotes or
// brackets) and a space.
std::vector<size_t> find_sentences(std::string_view text);

}  // namespace heed
