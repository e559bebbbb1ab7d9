// Which values and combinations of a recipe are possible.
#pragma once

#include <string>
#include <vector>

#include "train/recipe/recipe.h"

namespace heed {

// Adds a sentence for each value or combination that is not.
void check_recipe(const Recipe& recipe, std::vector<std::string>& problems);

// " (did you mean heads?)", or empty.
std::string suggestion(const std::string& given, const std::vector<std::string>& names);

}  // namespace heed
