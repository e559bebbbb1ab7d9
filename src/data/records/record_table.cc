// Tables (TSV, CSV) and JSON lines.
#include <utility>

#include "data/records/columns.h"
#include "data/records/files_reader.h"
#include "heed/error.h"

namespace heed {

namespace {

// TSV and CSV.
class TableRecords final : public FilesReader {
 public:
  TableRecords(const CorpusOptions& corpus, Objective objective, const FilterOptions& filters,
               bool csv)
      : FilesReader(corpus, filters), corpus_(corpus), objective_(objective), csv_(csv) {
    if (!names_columns(corpus)) columns_ = choose_columns(corpus, objective, std::nullopt);
  }

  bool next(Record& record) override {
    record.clear();
    if (!next_row(record)) return false;
    if (!columns_ || (columns_->has_header && line_reader().line_number() == 1)) {
      read_header(record);
      record.clear();
      if (!next_row(record)) return false;
    }
    if (record.skip) return true;
    if (fields_.size() < columns_->needed()) {
      record.skip = is_blank(line_) ? Skip::empty : Skip::malformed;
      return true;
    }
    record.first = fields_[columns_->first];
    if (columns_->second) {
      record.second = fields_[*columns_->second];
      record.has_second = true;
    }
    if (columns_->label) record.label = fields_[*columns_->label];
    if (is_blank(record.first) || (record.has_second && is_blank(record.second))) {
      record.skip = Skip::empty;
    }
    return true;
  }

 private:
  bool next_row(Record& record) {
    if (!next_line_anywhere(line_)) return false;
    mark_place(record);
    record.skip = problem_of(line_);
    if (record.skip) return true;
    if (!csv_) {
      split_tabs(line_, fields_);
      return true;
    }
    while (!split_csv(line_, fields_)) {
      std::string more;
      if (std::ssize(line_) > max_line_bytes() || !next_line(more)) {
        record.skip = Skip::malformed;  // an unclosed quote
        return true;
      }
      line_ += '\n';
      line_ += more;
    }
    return true;
  }
  void read_header(const Record& record) {
    try {
      columns_ = choose_columns(corpus_, objective_, fields_);
    } catch (const Error& error) {
      throw Error(error.code(), record.where() + ": " + error.what(), error.hint());
    }
  }

  CorpusOptions corpus_;
  Objective objective_;
  bool csv_;
  std::optional<TableColumns> columns_;
  std::string line_;
  std::vector<std::string> fields_;
};

class JsonRecords final : public FilesReader {
 public:
  JsonRecords(const CorpusOptions& corpus, Objective objective, const FilterOptions& filters)
      : FilesReader(corpus, filters), columns_(corpus, objective), objective_(objective) {}

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
    if (!columns_.read(line_, values_)) {
      record.skip = Skip::malformed;
      return true;
    }
    std::swap(record.first, values_.first);
    std::swap(record.second, values_.second);
    std::swap(record.label, values_.label);
    std::swap(record.words, values_.words);
    std::swap(record.tags, values_.tags);
    record.has_second = columns_.has_second();
    const bool empty =
        objective_ == Objective::tagging
            ? record.words.empty()
            : is_blank(record.first) || (record.has_second && is_blank(record.second));
    // Escapes can produce NUL bytes and invalid text.
    if (record.first.find('\0') != std::string::npos ||
        record.second.find('\0') != std::string::npos) {
      record.skip = Skip::nul;
    } else if (empty) {
      record.skip = Skip::empty;
    } else {
      record.sentences = find_sentences(record.first);
    }
    return true;
  }

 private:
  JsonColumns columns_;
  Objective objective_;
  std::string line_;
  JsonColumns::Values values_;
};

}  // namespace

std::unique_ptr<RecordReader> open_table_records(const CorpusOptions& corpus, Objective objective,
                                                 const FilterOptions& filters, bool csv) {
  return std::make_unique<TableRecords>(corpus, objective, filters, csv);
}

std::unique_ptr<RecordReader> open_json_records(const CorpusOptions& corpus, Objective objective,
                                                const FilterOptions& filters) {
  return std::make_unique<JsonRecords>(corpus, objective, filters);
}

}  // namespace heed
