// Any bytes as a row of an earlier sweep: settings.json and the part of result.json besides the
// settings, separated by a NUL.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "heed/sweep.h"

namespace {

using namespace heed;

constexpr const char* kRecipe =
    "[model]\npreset = \"nanogpt-cpu\"\n[data]\ntrain = [\"recipe.toml\"]\n"
    "[objective]\nkind = \"causal_lm\"\n[train]\nsteps = 1\n";
constexpr const char* kSweep = "recipe = \"recipe.toml\"\n[[rows]]\nname = \"base\"\n";

// Only a result with the same settings is read.
std::string result_file(std::string_view result) {
  static const std::string settings = [] {
    nlohmann::ordered_json json;
    for (const TrainSetting& s : train_settings({.recipe = "recipe.toml"})) {
      if (s.section != "train" || s.key != "out") json[s.section + "." + s.key] = s.value;
    }
    return json.dump();
  }();
  return "{\"settings\": " + settings + ", \"result\": " + std::string(result) + "}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFolder folder;
  static const bool is_ready = [] {
    folder.write("recipe.toml", kRecipe);
    folder.write("sweep.toml", kSweep);
    std::filesystem::current_path(folder.path());  // sweeps name their recipe relative to it
    return true;
  }();
  if (!is_ready) return 0;
  const auto [settings, result] = fuzz::split_at_nul({reinterpret_cast<const char*>(data), size});
  if (settings.empty()) {
    std::filesystem::remove("out/base/settings.json");
  } else {
    folder.write("out/base/settings.json", settings);
  }
  folder.write("out/base/result.json", result_file(result));
  fuzz::expect_ordinary([] {
    const std::atomic<bool> stop = true;  // before a row is trained
    const SweepResult swept = sweep({.file = "sweep.toml", .out = "out", .stop = &stop});
    for (const TableFormat format : {TableFormat::text, TableFormat::markdown, TableFormat::json}) {
      sweep_table(swept, format);
    }
    sweep_html(swept);
  });
  return 0;
}
