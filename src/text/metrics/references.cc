// Reading hypotheses and references.
#include <string_view>

#include "base/files/text_file.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "text/metrics/metric_text.h"

namespace heed {

std::vector<std::string> read_lines(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  std::string line;
  while (reader.next(line)) lines.emplace_back(strip_end(line));
  return lines;
}

References as_references(const std::vector<std::vector<std::string>>& files) {
  References references;
  if (files.empty()) return references;
  references.resize(files.front().size());
  for (size_t f = 0; f < files.size(); ++f) {
    if (files[f].size() != references.size()) {
      throw Error(ErrorCode::invalid_argument,
                  "references: files must have the same number of lines, got " +
                      std::to_string(references.size()) + " in the first and " +
                      std::to_string(files[f].size()) + " in number " + std::to_string(f + 1));
    }
    for (size_t i = 0; i < references.size(); ++i) references[i].push_back(files[f][i]);
  }
  return references;
}

References without_empty(References references) {
  for (std::vector<std::string>& segment : references) {
    std::erase_if(segment, [](const std::string& text) { return text.empty(); });
  }
  return references;
}

References references_from_tsv(const std::vector<std::string>& lines) {
  References references;
  references.reserve(lines.size());
  for (const std::string& line : lines) {
    std::vector<std::string>& segment = references.emplace_back();
    for (size_t tab = line.find('\t'); tab != std::string::npos;) {
      const size_t begin = tab + 1;
      tab = line.find('\t', begin);
      const std::string_view column = strip_end(
          std::string_view(line).substr(begin, tab == std::string::npos ? tab : tab - begin));
      if (!column.empty()) segment.emplace_back(column);
    }
  }
  return references;
}

}  // namespace heed
