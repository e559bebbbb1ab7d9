#include "data/records/corpus_report.h"

namespace heed {

void CorpusReport::count(Skip skip, std::string_view where) {
  SkipCount& entry = (*this)[skip];
  if (entry.count++ == 0) entry.first = where;
}

std::string CorpusReport::summary() const {
  std::string text = name + ": " + std::to_string(read) + " read, " + std::to_string(kept) +
                     " kept, " + std::to_string(tokens) + " tokens";
  const char* separator = "; ";
  for (const auto& [skip, skip_name] : kEnumNames<Skip>) {
    const SkipCount& entry = (*this)[skip];
    if (entry.count == 0) continue;
    text += separator + std::to_string(entry.count) + " " + std::string(skip_name) +
            " (first: " + entry.first + ")";
    separator = ", ";
  }
  return text;
}

}  // namespace heed
