#include "model/presets.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text/suggest.h"
#include "heed/error.h"
#include "model/preset_files.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

const PresetFile* find(std::string_view name) {
  for (const PresetFile& file : preset_files()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

ModelConfig read(const PresetFile& file) {
  Json json = Json::parse(file.text);
  ModelConfig start;
  if (const auto base = json.find("extends"); base != json.end()) {
    const PresetFile* parent = find(base->get<std::string>());
    HEED_CHECK(parent, "a preset extends an unknown one");
    start = read(*parent);
  }
  json.erase("about");
  json.erase("published_million_parameters");
  json.erase("extends");
  return config_from_json(json.dump(), start, "preset " + std::string(file.name));
}

}  // namespace

std::vector<Preset> presets() {
  std::vector<Preset> list;
  for (const PresetFile& file : preset_files()) {
    const Json json = Json::parse(file.text);
    list.push_back({std::string(file.name), json.at("about"),
                    json.value("published_million_parameters", 0.0)});
  }
  return list;
}

ModelConfig preset(std::string_view name) {
  if (const PresetFile* file = find(name)) return read(*file);
  std::vector<std::string> names;
  for (const PresetFile& file : preset_files()) names.emplace_back(file.name);
  const std::optional<std::string> near = nearest(name, names);
  throw Error(ErrorCode::not_found, "there is no preset '" + std::string(name) + "'",
              near ? "did you mean '" + *near + "'?" : "`heed presets` lists them");
}

}  // namespace heed
