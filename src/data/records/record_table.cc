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
      if (is_blank(line_)) {
        record.skip = Skip::empty;
      } else {
        record.reject(std::to_string(fields_.size()) + " columns, must have " +
                      std::to_string(columns_->needed()));
      }
      return true;
    }
    if (csv_ && has_more_columns(record)) {
      record.reject(std::to_string(fields_.size()) + " columns, the " +
                    (columns_->has_header ? "header" : "first row") + " has " +
                    std::to_string(width_) + ": quote a text that contains a comma");
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
    CsvEnd end = split_csv(line_, fields_);
    while (end == CsvEnd::open_quote) {
      std::string more;
      if (std::ssize(line_) > max_line_bytes() || !next_line(more)) {
        record.reject("the quote is not closed, so the lines up to " +
                      std::to_string(line_reader().line_number()) + " belong to this row");
        return true;
      }
      line_ += '\n';
      line_ += more;
      end = split_csv(line_, fields_);
    }
    if (end == CsvEnd::stray_text) {
      record.reject("text follows a closing quote: double the quotes inside a quoted column");
    }
    return true;
  }
  // More than the header or, without one, the first row. Trailing empty columns hold no text.
  bool has_more_columns(const Record& record) {
    if (width_ == 0 || (!columns_->has_header && record.line == 1)) width_ = fields_.size();
    for (size_t i = width_; i < fields_.size(); ++i) {
      if (!is_blank(fields_[i])) return true;
    }
    return false;
  }
  void read_header(const Record& record) {
    width_ = fields_.size();
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
  size_t width_ = 0;  // columns of the header or the first row; 0: not read yet
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
    if (std::string problem = columns_.read(line_, values_); !problem.empty()) {
      record.reject(std::move(problem));
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
