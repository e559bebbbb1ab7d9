// Plain text by unit, labelled lines, and parallel files.
#include <array>

#include "base/check.h"
#include "data/records/files_reader.h"
#include "heed/error.h"

namespace heed {

namespace {

// Long documents are read in parts of about this many bytes, to bound the memory.
constexpr size_t kPartBytes = size_t{1} << 20;

class LineRecords final : public FilesReader {
 public:
  using FilesReader::FilesReader;

  bool next(Record& record) override {
    record.clear();
    if (!next_line_anywhere(record.first)) return false;
    mark_place(record);
    record.skip = problem_of(record.first);
    if (!record.skip && is_blank(record.first)) record.skip = Skip::empty;
    if (!record.skip) record.sentences = find_sentences(record.first);
    return true;
  }
};

// Lines up to a blank one or the end of a file, each line a sentence.
class ParagraphRecords final : public FilesReader {
 public:
  using FilesReader::FilesReader;

  bool next(Record& record) override {
    record.clear();
    for (;;) {
      if (!next_line(line_)) {
        const bool more = next_file();
        if (record.file != nullptr) return true;
        if (!more) return false;
      } else if (is_blank(line_)) {
        if (record.file != nullptr) return true;
      } else {
        add_line(record);
        record.ends_document = record.first.size() < kPartBytes;
        if (!record.ends_document) return true;
      }
    }
  }

 private:
  void add_line(Record& record) {
    if (record.file == nullptr) mark_place(record);
    if (const auto problem = problem_of(line_)) {
      record.skip = problem;  // the whole paragraph: a gap would join unrelated sentences
      return;
    }
    if (!record.first.empty()) {
      record.sentences.push_back(record.first.size());
      record.first += ' ';
    }
    record.first += line_;
  }

  std::string line_;
};

// Whole files including newlines, in parts.
class FileRecords final : public FilesReader {
 public:
  using FilesReader::FilesReader;

  bool next(Record& record) override {
    record.clear();
    for (;;) {
      if (!has_line_ && !(has_line_ = next_line(line_))) {
        const bool more = next_file();
        if (record.file != nullptr) return true;
        if (!more) return false;
        continue;
      }
      const auto problem = problem_of(line_);
      const bool ends_here = record.file != nullptr && (problem || is_good_cut(record));
      if (ends_here) {  // the kept line begins the next part
        record.ends_document = false;
        return true;
      }
      if (record.file == nullptr) mark_place(record);
      if (problem) {  // a separate part, so that only this line is skipped
        has_line_ = false;
        record.skip = problem;
        record.ends_document = false;
        return true;
      }
      take_line(record);
    }
  }

 private:
  // Between two non-blank lines every tokenizer splits, so the parts have the tokens of the whole.
  // Without such lines, bounded memory is more important.
  bool is_good_cut(const Record& record) const {
    if (record.first.size() < kPartBytes) return false;
    return (!is_blank(line_) && !last_was_blank_) || record.first.size() >= 16 * kPartBytes;
  }
  void take_line(Record& record) {
    has_line_ = false;
    last_was_blank_ = is_blank(line_);
    record.first += line_;
    record.first += '\n';
  }

  std::string line_;
  bool has_line_ = false, last_was_blank_ = false;
};

class LabelledRecords final : public FilesReader {
 public:
  using FilesReader::FilesReader;

  bool next(Record& record) override {
    record.clear();
    if (!next_line_anywhere(line_)) return false;
    mark_place(record);
    record.skip = problem_of(line_);
    if (record.skip) return true;
    if (is_blank(line_)) {
      record.skip = Skip::empty;
      return true;
    }
    const size_t end = line_.find_first_of(" \t");
    record.label = line_.substr(0, end);
    if (record.label.empty()) {
      record.reject("a line must begin with its label, got a space");
      return true;
    }
    if (end == std::string::npos || is_blank(std::string_view(line_).substr(end))) {
      record.skip = Skip::empty;
      return true;
    }
    record.first = line_.substr(end + 1);
    return true;
  }

 private:
  std::string line_;
};

// Two files, line by line.
class ParallelRecords final : public RecordReader {
 public:
  ParallelRecords(const CorpusOptions& corpus, const FilterOptions& filters)
      : paths_{corpus.files[0], corpus.files[1]},
        first_(paths_[0]),
        second_(paths_[1]),
        max_line_bytes_(filters.max_line_bytes) {}

  int64_t bytes_read() const override { return first_.bytes_read() + second_.bytes_read(); }

  bool next(Record& record) override {
    record.clear();
    const bool has_first = first_.next(record.first), has_second = second_.next(record.second);
    if (has_first != has_second) complain_of_lengths();
    if (!has_first) return false;
    record.has_second = true;
    record.line = first_.line_number();
    for (const size_t side : {0, 1}) {
      const std::string& text = side == 0 ? record.first : record.second;
      record.file = &paths_[side];
      record.skip = line_problem(text, max_line_bytes_);
      if (!record.skip && is_blank(text)) record.skip = Skip::empty;
      if (record.skip) return true;
    }
    record.file = &paths_[0];
    return true;
  }

 private:
  [[noreturn]] void complain_of_lengths() {
    std::string line;
    std::array<int64_t, 2> lines{};
    for (const size_t side : {0, 1}) {
      LineReader& reader = side == 0 ? first_ : second_;
      while (reader.next(line)) {
      }
      lines[side] = reader.line_number();
    }
    throw Error(ErrorCode::invalid_argument,
                "parallel files must have the same number of lines: " + paths_[0] + " has " +
                    std::to_string(lines[0]) + " lines, " + paths_[1] + " has " +
                    std::to_string(lines[1]),
                "line n of one must be the translation of line n of the other");
  }

  std::array<std::string, 2> paths_;
  LineReader first_, second_;
  int64_t max_line_bytes_;
};

}  // namespace

std::unique_ptr<RecordReader> open_text_records(const CorpusOptions& corpus,
                                                const FilterOptions& filters) {
  switch (corpus.unit) {
    case TextUnit::line:
      return std::make_unique<LineRecords>(corpus, filters);
    case TextUnit::paragraph:
      return std::make_unique<ParagraphRecords>(corpus, filters);
    case TextUnit::file:
      return std::make_unique<FileRecords>(corpus, filters);
  }
  HEED_CHECK(false, "unknown text unit");
}

std::unique_ptr<RecordReader> open_labelled_records(const CorpusOptions& corpus,
                                                    const FilterOptions& filters) {
  return std::make_unique<LabelledRecords>(corpus, filters);
}

std::unique_ptr<RecordReader> open_parallel_records(const CorpusOptions& corpus,
                                                    const FilterOptions& filters) {
  if (corpus.files.size() != 2) {
    throw Error(
        ErrorCode::invalid_argument,
        "a parallel corpus must have two files, source and target, got " +
            (corpus.files.size() == 1
                 ? "only " + corpus.files[0]
                 : std::to_string(corpus.files.size()) + " (" + corpus.files[0] + ", …)"),
        corpus.files.size() == 1
            ? "add the target file: train = [\"SOURCE\", \"TARGET\"]; for both texts in one "
              "file set data.format to \"tsv\", \"csv\" or \"jsonl\""
            : "use one [[data.corpora]] table for each pair of files");
  }
  return std::make_unique<ParallelRecords>(corpus, filters);
}

}  // namespace heed
