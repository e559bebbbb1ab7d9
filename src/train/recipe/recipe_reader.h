// Fills a recipe from TOML and from --set.
#pragma once

#include <string>
#include <vector>

#include "train/recipe/recipe.h"
#include "train/recipe/recipe_checks.h"

namespace heed {

// Values that cannot be stored are added to `problems`. Text that is not TOML throws
// invalid_argument.
void read_recipe_text(const std::string& text, const std::string& where, Recipe& recipe,
                      std::vector<RecipeProblem>& problems);
void read_recipe_sets(const std::vector<std::string>& sets, Recipe& recipe,
                      std::vector<RecipeProblem>& problems);

}  // namespace heed
