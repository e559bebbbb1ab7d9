// Which values and combinations of a recipe are possible.
#pragma once

#include <string>
#include <vector>

#include "train/recipe/recipe.h"

namespace heed {

struct RecipeProblem {
  std::string text;  // with its place: "recipe.toml:12: …", "--set: …"
  std::string hint;  // how to correct it
};

// Adds each value or combination that is not.
void check_recipe(const Recipe& recipe, std::vector<RecipeProblem>& problems);

// Throws invalid_argument: one problem with its hint, or several as a list ("\n  - " before each).
[[noreturn]] void throw_problems(const std::string& where,
                                 const std::vector<RecipeProblem>& problems);

// The values of a string key of which only some are possible; else empty. Those of validate.metric
// depend on the objective.
std::vector<std::string> text_values(const Recipe& recipe, const std::string& key);

// "path/recipe.toml:12: ", "--set: " or, for a default, "path/recipe.toml: ".
std::string place_of(const Recipe& recipe, const std::string& key);

// " (did you mean heads?)", or empty.
std::string suggestion(const std::string& given, const std::vector<std::string>& names);

}  // namespace heed
