#include "data/records/record_split.h"

#include <sys/stat.h>

#include <bit>
#include <filesystem>

#include "base/files/atomic_file.h"
#include "data/batches/hash.h"
#include "data/records/columns.h"
#include "data/records/files_reader.h"
#include "heed/error.h"

namespace heed {

namespace {

namespace fs = std::filesystem;

// The last character boundary of text[0, size).
size_t character_end(std::string_view text, size_t size) {
  while (size > 0 && size < text.size() &&
         (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) {
    --size;
  }
  return size;
}

// The records of one file as raw text.
class WrittenRecords {
 public:
  WrittenRecords(const std::string& path, const CorpusOptions& corpus, int64_t max_line_bytes)
      : reader_(path),
        format_(corpus.format),
        ends_with_blank_(
            corpus.format == CorpusFormat::conll ||
            (corpus.format == CorpusFormat::text && corpus.unit == TextUnit::paragraph)),
        max_line_bytes_(max_line_bytes) {}

  // With the newline of its last line; false at the end of the file.
  bool next(std::string& record) {
    record.clear();
    if (format_ == CorpusFormat::brackets) {
      if (!next_tree_text(reader_, record)) return false;
      record += '\n';
      return true;
    }
    while (reader_.next(line_)) {
      if (ends_with_blank_ && record.empty() && is_blank(line_)) continue;
      record += line_;
      const bool is_whole = ends_here(record);
      record += '\n';
      if (is_whole) return true;
    }
    if (ends_with_blank_ && !record.empty()) record += '\n';  // another file may follow
    return !record.empty();
  }

 private:
  bool ends_here(const std::string& record) {
    if (ends_with_blank_) return is_blank(line_);
    if (format_ != CorpusFormat::csv) return true;
    // As in the table reader: quotes of a skipped line do not count.
    return line_problem(record, max_line_bytes_) ||
           split_csv(record, fields_) != CsvEnd::open_quote;
  }

  LineReader reader_;
  CorpusFormat format_;
  bool ends_with_blank_;
  int64_t max_line_bytes_;
  std::string line_;
  std::vector<std::string> fields_;
};

// Concatenated records and their ends.
struct Written {
  std::string header, text;
  std::vector<size_t> ends;
};

Written read_written(const std::vector<std::string>& files, const CorpusOptions& corpus,
                     int64_t max_line_bytes) {
  const bool is_table = corpus.format == CorpusFormat::tsv || corpus.format == CorpusFormat::csv;
  Written w;
  std::string record;
  for (const std::string& file : files) {
    WrittenRecords records(file, corpus, max_line_bytes);
    if (is_table && names_columns(corpus) && records.next(record) && w.header.empty()) {
      w.header = record;
    }
    while (records.next(record)) {
      w.text += record;
      w.ends.push_back(w.text.size());
    }
  }
  return w;
}

// Hash of the files' sizes and times, and of the settings that affect the split.
std::string fingerprint(const CorpusOptions& corpus, double share) {
  std::string made_of = std::to_string(std::bit_cast<uint64_t>(share)) + " " +
                        std::string(name_of(corpus.format)) + " " +
                        std::string(name_of(corpus.unit)) + (names_columns(corpus) ? " named" : "");
  for (const std::string& file : corpus.files) {
    struct stat status {};
    stat(file.c_str(), &status);  // the reader has opened it
    made_of += "\n" + file;
    for (const int64_t number : {int64_t{status.st_size}, int64_t{status.st_mtim.tv_sec},
                                 int64_t{status.st_mtim.tv_nsec}}) {
      made_of += " " + std::to_string(number);
    }
  }
  return hexadecimal(hash_text(made_of));
}

// ".tsv" of "train.tsv.gz": the parts are not compressed.
std::string extension_of(const std::string& file) {
  fs::path name = fs::path(file).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.extension();
}

void write_whole(const std::string& path, std::string_view header, std::string_view text) {
  AtomicFile file(path);
  file.write(header);
  file.write(text);
  file.commit();
}

size_t find_cut(const Written& w, const CorpusOptions& corpus, double share) {
  size_t cut = 0;
  if (corpus.format == CorpusFormat::text && corpus.unit == TextUnit::file) {
    const auto bytes = static_cast<size_t>(static_cast<double>(w.text.size()) * (1 - share));
    cut = character_end(w.text, bytes);
  } else {
    const auto records = static_cast<size_t>(static_cast<double>(w.ends.size()) * (1 - share));
    cut = records > 0 ? w.ends[records - 1] : 0;
  }
  if (cut == 0 || cut >= w.text.size()) {
    throw Error(ErrorCode::invalid_argument,
                corpus.files.front() + ": both parts of a validate.share split must have records",
                "use separate files for [validate]");
  }
  return cut;
}

}  // namespace

CorpusSplit split_corpus(const CorpusOptions& corpus, Objective objective,
                         const FilterOptions& filters, double share, const std::string& folder) {
  const auto reader = open_records(corpus, objective, filters);  // throws for unreadable files
  CorpusSplit split{corpus, corpus};
  // The format of a part must not depend on its name.
  split.training.format = split.validation.format = format_of(corpus, objective);
  const CorpusOptions known = split.training;
  split.training.files.clear(), split.validation.files.clear();
  // Files are concatenated, except parallel ones.
  std::vector<std::vector<std::string>> sides{known.files};
  if (known.format == CorpusFormat::parallel) sides = {{known.files[0]}, {known.files[1]}};
  const std::string made_of = fingerprint(known, share);
  bool is_done = true;
  for (size_t i = 0; i < sides.size(); ++i) {
    const std::string side = sides.size() == 1 ? "" : i == 0 ? ".source" : ".target";
    const std::string ending = "-" + made_of + side + extension_of(sides[i].front());
    split.training.files.push_back(folder + "/training" + ending);
    split.validation.files.push_back(folder + "/validation" + ending);
    is_done =
        is_done && fs::exists(split.training.files[i]) && fs::exists(split.validation.files[i]);
  }
  // Not rewritten: the corpus cache depends on the files' times.
  if (is_done) return split;
  if (known.format == CorpusFormat::parallel) {  // throws when one has more lines
    for (Record record; reader->next(record);) {
    }
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    const Written w = read_written(sides[i], known, filters.max_line_bytes);
    const size_t cut = find_cut(w, known, share);
    const std::string_view whole = w.text;
    write_whole(split.training.files[i], w.header, whole.substr(0, cut));
    write_whole(split.validation.files[i], w.header, whole.substr(cut));
  }
  return split;
}

}  // namespace heed
