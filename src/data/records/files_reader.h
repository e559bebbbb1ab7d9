// Shared by the record readers; for record_*.cc only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/text_file.h"
#include "data/records/record_reader.h"
#include "text/unicode/utf8.h"

namespace heed {

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// Why a line is not text, if so.
inline std::optional<Skip> line_problem(std::string_view line, int64_t max_bytes) {
  if (std::ssize(line) > max_bytes) return Skip::long_line;
  if (line.find('\0') != std::string_view::npos) return Skip::nul;
  if (!is_utf8(line)) return Skip::invalid_utf8;
  return std::nullopt;
}

// Base of readers that read files one after the other.
class FilesReader : public RecordReader {
 public:
  FilesReader(const CorpusOptions& corpus, const FilterOptions& filters)
      : paths_(corpus.files), max_line_bytes_(filters.max_line_bytes) {
    for (const std::string& path : paths_) LineReader probe(path);  // throws before any work
    reader_.emplace(paths_[0]);
  }
  int64_t bytes_read() const override { return bytes_before_ + reader_->bytes_read(); }

 protected:
  // The next line of this file; false at its end.
  bool next_line(std::string& line) { return reader_->next(line); }
  // Opens the next file; false after the last.
  bool next_file() {
    if (file_ + 1 >= paths_.size()) return false;
    bytes_before_ += reader_->bytes_read();
    reader_.emplace(paths_[++file_]);
    return true;
  }
  // The next line of this file or a later one.
  bool next_line_anywhere(std::string& line) {
    while (!next_line(line)) {
      if (!next_file()) return false;
    }
    return true;
  }
  LineReader& line_reader() { return *reader_; }
  const std::string& path() const { return paths_[file_]; }

  void mark_place(Record& record) const {
    record.file = &paths_[file_];
    record.line = reader_->line_number();
  }
  std::optional<Skip> problem_of(std::string_view line) const {
    return line_problem(line, max_line_bytes_);
  }
  int64_t max_line_bytes() const { return max_line_bytes_; }

 private:
  std::vector<std::string> paths_;
  int64_t max_line_bytes_;
  std::optional<LineReader> reader_;
  size_t file_ = 0;
  int64_t bytes_before_ = 0;
};

// One per format.
std::unique_ptr<RecordReader> open_text_records(const CorpusOptions& corpus,
                                                const FilterOptions& filters);
std::unique_ptr<RecordReader> open_labelled_records(const CorpusOptions& corpus,
                                                    const FilterOptions& filters);
std::unique_ptr<RecordReader> open_parallel_records(const CorpusOptions& corpus,
                                                    const FilterOptions& filters);
std::unique_ptr<RecordReader> open_table_records(const CorpusOptions& corpus, Objective objective,
                                                 const FilterOptions& filters, bool csv);
std::unique_ptr<RecordReader> open_json_records(const CorpusOptions& corpus, Objective objective,
                                                const FilterOptions& filters);
std::unique_ptr<RecordReader> open_conll_records(const CorpusOptions& corpus,
                                                 const FilterOptions& filters);
std::unique_ptr<RecordReader> open_bracket_records(const CorpusOptions& corpus, Objective objective,
                                                   const FilterOptions& filters);

}  // namespace heed
