// Sentences with linguistic annotation: CoNLL columns and Penn Treebank brackets.
#include <algorithm>

#include "data/records/columns.h"
#include "data/records/files_reader.h"
#include "heed/error.h"
#include "text/trees/tree.h"

namespace heed {

namespace {

// One word per line, sentences separated by blank lines.
class ConllRecords final : public FilesReader {
 public:
  ConllRecords(const CorpusOptions& corpus, const FilterOptions& filters)
      : FilesReader(corpus, filters), corpus_(corpus) {}

  bool next(Record& record) override {
    record.clear();
    for (;;) {
      if (!next_line(line_)) {
        const bool more = next_file();
        if (record.file != nullptr) return finish(record);
        if (!more) return false;
      } else if (is_blank(line_)) {
        if (record.file != nullptr) return finish(record);
      } else {
        add_line(record);
      }
    }
  }

 private:
  static constexpr size_t kConlluColumns = 10;

  bool finish(Record& record) {
    // CoNLL-2003 separates documents by a -DOCSTART- sentence.
    const bool marker = record.words.size() == 1 && record.words[0] == "-DOCSTART-";
    if (!record.skip && (record.words.empty() || marker)) record.skip = Skip::empty;
    return true;
  }

  void add_line(Record& record) {
    // Comments precede a sentence's words and have no columns.
    const bool comment = line_[0] == '#' && record.words.empty() &&
                         line_.find('\t') == std::string::npos && is_conllu();
    if (comment) return;
    if (record.file == nullptr) mark_place(record);
    if (const auto problem = problem_of(line_)) {
      record.skip = problem;
      return;
    }
    if (line_.find('\t') != std::string::npos) {
      split_tabs(line_, fields_);
    } else {
      split_spaces(line_, fields_);
    }
    const bool conllu = fields_.size() == kConlluColumns;
    // "3-4" is a contraction whose parts follow, "3.1" an empty node.
    if (conllu && fields_[0].find_first_of("-.") != std::string::npos) return;
    const size_t word = column(corpus_.first_column, conllu ? 2 : 1);
    const size_t tag =
        column(corpus_.label_column, conllu ? 4 : static_cast<int64_t>(fields_.size()));
    if (std::max(word, tag) >= fields_.size()) {
      record.reject("line " + std::to_string(line_reader().line_number()) + " has " +
                    std::to_string(fields_.size()) + " columns, must have " +
                    std::to_string(std::max(word, tag) + 1));
      return;
    }
    if (fields_[word].empty()) {
      record.reject("the word of line " + std::to_string(line_reader().line_number()) +
                    " is empty");
      return;
    }
    record.words.push_back(fields_[word]);
    record.tags.push_back(fields_[tag]);
  }

  // By the file name, because comments precede the first columns.
  bool is_conllu() const {
    return path().find(".conllu") != std::string::npos || line_.starts_with("# sent_id") ||
           line_.starts_with("# text") || line_.starts_with("# newdoc");
  }

  static size_t column(const std::string& chosen, int64_t otherwise) {
    if (chosen.empty()) return static_cast<size_t>(otherwise - 1);
    CorpusOptions only;
    only.first_column = chosen;
    if (names_columns(only)) {
      throw Error(ErrorCode::invalid_argument,
                  "a CoNLL column must be a number, got \"" + chosen + "\"",
                  "columns are numbered from 1");
    }
    return choose_columns(only, Objective::causal_lm, std::nullopt).first;
  }

  CorpusOptions corpus_;
  std::string line_;
  std::vector<std::string> fields_;
};

// Penn Treebank brackets: the words and the linear tree, or the words and their tags.
class BracketRecords final : public FilesReader {
 public:
  BracketRecords(const CorpusOptions& corpus, Objective objective, const FilterOptions& filters)
      : FilesReader(corpus, filters), objective_(objective), tree_words_(corpus.tree_words) {}

  bool next(Record& record) override {
    record.clear();
    while (!next_tree_text(line_reader(), text_)) {
      if (!next_file()) return false;
    }
    mark_place(record);
    record.skip = problem_of(text_);
    if (record.skip) return true;
    std::optional<Tree> tree;
    try {
      tree = clean_tree(parse_tree(text_));
    } catch (const Error& error) {
      record.reject(error.what());
      return true;
    }
    if (!tree) {
      record.skip = Skip::empty;
      return true;
    }
    record.words = words_of(*tree);
    if (objective_ == Objective::tagging) {
      record.tags = tags_of(*tree);
      return true;
    }
    for (const std::string& word : record.words) {
      if (!record.first.empty()) record.first += ' ';
      record.first += word;
    }
    record.second = linear_tree(*tree, tree_words_);
    record.has_second = true;
    return true;
  }

 private:
  Objective objective_;
  LinearWords tree_words_;
  std::string text_;
};

}  // namespace

std::unique_ptr<RecordReader> open_conll_records(const CorpusOptions& corpus,
                                                 const FilterOptions& filters) {
  return std::make_unique<ConllRecords>(corpus, filters);
}

std::unique_ptr<RecordReader> open_bracket_records(const CorpusOptions& corpus, Objective objective,
                                                   const FilterOptions& filters) {
  return std::make_unique<BracketRecords>(corpus, objective, filters);
}

}  // namespace heed
