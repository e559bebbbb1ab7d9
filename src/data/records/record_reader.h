// The examples of a corpus as text, one by one, whatever the format of its files.
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
  bool has_second = false;            // an empty text is still a text
  std::string label;                  // of a text to classify; the number of a regression
  std::vector<std::string> words;     // tagging: the sentence's words …
  std::vector<std::string> tags;      // … and their classes
  std::vector<size_t> sentences;      // where sentences of `first` begin, but for the first one
  bool ends_document = true;          // false: the file goes on in the next record
  std::optional<Skip> skip;           // set when the reader already knows that it is of no use
  const std::string* file = nullptr;  // where it is: the file, which the reader owns, …
  int64_t line = 0;                   // … and its first line

  std::string where() const;  // "train.en:17"
  void clear();
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // False at the end. Throws corrupt_file when what a file says contradicts itself, and
  // invalid_argument when two parallel files do not have the same number of lines.
  virtual bool next(Record& record) = 0;

  // Bytes of all files as they lie on the disk, and how many of them were read.
  virtual int64_t bytes_read() const = 0;
};

// automatic: what the names say; others as they are.
CorpusFormat format_of(const CorpusOptions& corpus, Objective objective);

// Throws not_found and invalid_argument for files that are not there or not files, formats that do
// not suit the objective, and columns that do not exist.
std::unique_ptr<RecordReader> open_records(const CorpusOptions& corpus, Objective objective,
                                           const FilterOptions& filters = {});

// Where sentences begin in a text on one line, but for the first: after . ! or ? (and closing
// quotes or brackets), before a space.
std::vector<size_t> find_sentences(std::string_view text);

}  // namespace heed
