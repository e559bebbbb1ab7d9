// Search options of a model's config files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/search.h"

namespace heed {

struct GenerationSettings {
  SearchOptions search;
  std::vector<std::string> names;  // of the keys that are set, sorted
};

// Reads config.json, and over it generation_config.json (null: there is none), both as Hugging Face
// writes them. Fields of another type than they should have throw corrupt_file; `where` names the
// model. Fields that Heed does not know are passed over: they are hints, not the model.
GenerationSettings read_generation_settings(const nlohmann::json& config,
                                            const nlohmann::json& generation,
                                            const std::string& where);

}  // namespace heed
