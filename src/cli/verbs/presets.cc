// heed presets: lists the named model configurations.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/table.h"
#include "heed/model_files.h"

namespace heed::cli {
namespace {

std::string to_text(const std::vector<PresetInfo>& presets) {
  Table table({{"name"}, {"parameters", Align::right}, {"about"}});
  for (const PresetInfo& preset : presets) {
    table.add_row(
        {preset.name, fixed(static_cast<double>(preset.parameters) / 1e6, 1) + " M", preset.about});
  }
  return table.text();
}

std::string to_json(const std::vector<PresetInfo>& presets) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PresetInfo& preset : presets) {
    list.push_back(
        {{"name", preset.name}, {"parameters", preset.parameters}, {"about", preset.about}});
  }
  return list.dump(2) + "\n";
}

}  // namespace

void add_presets(Program& program) {
  const Command presets = program.add_verb("presets", "List the model presets");
  const auto flags = std::make_shared<CommonFlags>();
  add_common_flags(presets, *flags);
  presets.on_run([flags](Output& out) {
    const std::vector<PresetInfo> list = list_presets();
    out.write(flags->json ? to_json(list) : to_text(list));
  });
}

}  // namespace heed::cli
