// "Did you mean …": the known name nearest to a mistyped one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// How many single-character edits turn `a` into `b`: an insertion, a removal, a replacement, or a
// swap of two neighbours (Damerau–Levenshtein, each place edited at most once).
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, or none when no name is near enough to be a likely typo. A name that is a
// prefix of the other always counts as near: `benchmark` means `bench`.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& names);

}  // namespace heed
