#include "base/text/suggest.h"

#include <algorithm>
#include <cstddef>

namespace heed {
namespace {

// One edit for every three characters: `jsn` finds `json`, `verbose` does not find `version`.
int tolerated_edits(std::string_view name) { return (static_cast<int>(name.size()) + 2) / 3; }

// Leading dashes do not count as a difference.
std::string_view without_dashes(std::string_view name) {
  const size_t first = name.find_first_not_of('-');
  return first == std::string_view::npos ? std::string_view() : name.substr(first);
}

bool one_starts_the_other(std::string_view a, std::string_view b) {
  constexpr size_t kShortestStart = 2;  // one letter is a prefix of too many names
  const size_t common = std::min(a.size(), b.size());
  return common >= kShortestStart && a.substr(0, common) == b.substr(0, common);
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // rows[i][j]: the distance between the first i characters of a and the first j of b.
  std::vector<std::vector<int>> rows(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& names) {
  std::optional<std::string> best;
  int best_distance = 0;
  for (const std::string& name : names) {
    const std::string_view a = without_dashes(typed), b = without_dashes(name);
    const int distance = edit_distance(a, b);
    if (distance > tolerated_edits(a) && !one_starts_the_other(a, b)) continue;
    if (!best || distance < best_distance) best = name, best_distance = distance;
  }
  return best;
}

}  // namespace heed
