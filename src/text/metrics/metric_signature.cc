#include "text/metrics/metric_signature.h"

#include <algorithm>

#include "heed/error.h"

namespace heed {
namespace {

constexpr const char* kSacrebleuVersion = "2.6.0";

// "2", or "var" when segments have different numbers of references.
std::string reference_count(const References& references) {
  const size_t first = references.front().size();
  const bool same = std::all_of(references.begin(), references.end(),
                                [first](const auto& segment) { return segment.size() == first; });
  return same ? std::to_string(first) : "var";
}

}  // namespace

void check_segments(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const References& references) {
  if (hypotheses.size() != references.size()) {
    throw Error(ErrorCode::invalid_argument,
                metric + ": must have as many references as hypotheses, got " +
                    std::to_string(hypotheses.size()) + " hypotheses and " +
                    std::to_string(references.size()) + " references",
                "both sides must have one line per segment");
  }
  if (hypotheses.empty()) {
    throw Error(ErrorCode::invalid_argument, metric + ": must have segments to compare, got none",
                "the files are empty");
  }
  for (size_t i = 0; i < references.size(); ++i) {
    if (!references[i].empty()) continue;
    throw Error(ErrorCode::invalid_argument,
                metric + ": segment " + std::to_string(i + 1) + " has no reference",
                "every segment must have at least one");
  }
}

std::string metric_signature(const References& references,
                             const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string signature = "nrefs:" + reference_count(references);
  for (const auto& [name, value] : fields) signature += "|" + name + ":" + value;
  return signature + "|version:" + kSacrebleuVersion;
}

}  // namespace heed
