// Named configurations: data files (model/presets/*.json), compiled in.
//
// A file has ModelConfig's fields, `about` in a few words, and optionally `extends` (the preset whose
// values it starts from) and `published_million_parameters` (which a test checks).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace heed {

struct Preset {
  std::string name;
  std::string about;
  double published_million_parameters = 0;  // 0: none published
};

// All of them, by name.
std::vector<Preset> presets();
// Throws not_found with the nearest name.
ModelConfig preset(std::string_view name);

}  // namespace heed
