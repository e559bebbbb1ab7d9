// What the user probably meant: the known name nearest to a mistyped one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// How many single-character edits turn `a` into `b`: an insertion, a removal, a replacement, or a
// swap of two neighbours (Damerau–Levenshtein, each place edited at most once).
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, or nothing when none is near enough to be a likely typing mistake. A
// name that is the start of the other is near whatever its length: `benchmark` means `bench`.
std::optional<std::string> nearest(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace heed
