#include "train/recipe/tokenizer_text.h"

#include <algorithm>

#include "base/files/atomic_file.h"
#include "data/records/record_reader.h"

namespace heed {
namespace {

// Size of a write.
constexpr size_t kWriteBytes = 1 << 20;

bool is_plain(const CorpusOptions& corpus, Objective objective) {
  const CorpusFormat format = format_of(corpus, objective);
  return format == CorpusFormat::text || format == CorpusFormat::parallel;
}

void append_line(std::string& lines, std::string_view prefix, std::string_view text) {
  if (text.empty()) return;
  const size_t begin = lines.size();
  lines.append(prefix).append(text);
  std::replace(lines.begin() + static_cast<ptrdiff_t>(begin), lines.end(), '\n', ' ');
  lines += '\n';
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

TokenizerText tokenizer_text(const std::vector<CorpusOptions>& corpora, Objective objective,
                             const std::string& path) {
  std::vector<std::string> files;
  for (const CorpusOptions& corpus : corpora) {
    for (const std::string& file : corpus.files) {
      // Two directions of one corpus have the same text.
      if (std::ranges::find(files, file) == files.end()) files.push_back(file);
    }
  }
  const auto plain = [&](const CorpusOptions& c) { return is_plain(c, objective); };
  if (std::ranges::all_of(corpora, plain)) return {files, {}};

  TokenizerText text{{path}, {}};
  AtomicFile out(path);
  std::string lines;
  for (const CorpusOptions& corpus : corpora) {
    const auto reader = open_records(corpus, objective);
    CorpusReport report{.name = corpus.files[0]};
    for (Record record; reader->next(record); ++report.read) {
      if (record.skip) {
        report.count(*record.skip, record.place());
        continue;
      }
      ++report.kept;
      const std::string words = objective == Objective::tagging ? joined(record.words) : "";
      append_line(lines, corpus.source_prefix, words.empty() ? record.first : words);
      append_line(lines, "", record.second);
      if (lines.size() < kWriteBytes) continue;
      out.write(lines);
      lines.clear();
    }
    if (report.kept == 0) throw_no_examples(report);
    if (report.kept < report.read) text.skipped.push_back(std::move(report));
  }
  out.write(lines);
  out.commit();
  return text;
}

}  // namespace heed
