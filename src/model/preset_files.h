// The files of model/presets/, as CMake compiles them in.
#pragma once

#include <span>
#include <string_view>

namespace heed {

struct PresetFile {
  std::string_view name;  // without .json
  std::string_view text;
};
std::span<const PresetFile> preset_files();

}  // namespace heed
