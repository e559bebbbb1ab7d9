#include "data/records/corpus_report.h"

#include "heed/error.h"

namespace heed {

void CorpusReport::count(Skip skip, std::string_view where) {
  SkipCount& entry = (*this)[skip];
  if (entry.count++ == 0) entry.first = where;
}

std::string CorpusReport::summary() const {
  const std::string why = skipped();
  return name + ": " + std::to_string(read) + " read, " + std::to_string(kept) + " kept, " +
         std::to_string(tokens) + " tokens" + (why.empty() ? "" : "; " + why);
}

std::string CorpusReport::skipped() const {
  std::string text;
  for (const auto& [skip, skip_name] : kEnumNames<Skip>) {
    const SkipCount& entry = (*this)[skip];
    if (entry.count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(entry.count) + " " +
            std::string(skip_name) + " (first: " + entry.first + ")";
  }
  return text;
}

void throw_no_examples(const CorpusReport& report) {
  if (report.read == 0) {
    throw Error(ErrorCode::invalid_argument,
                report.name + ": must have examples, the file has none",
                "check the file: it is empty, or has only a header");
  }
  throw Error(ErrorCode::invalid_argument,
              report.name + ": must have examples, all " + std::to_string(report.read) +
                  " were skipped: " + report.skipped(),
              "correct the named lines, or the [data] keys that say how they are read");
}

}  // namespace heed
