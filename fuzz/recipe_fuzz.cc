// Any bytes as a recipe, with a --set after a NUL, and as a sweep: an ordinary Error, or settings that
// can be printed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "heed/sweep.h"
#include "train/recipe/recipe.h"

namespace {

using namespace heed;
using fuzz::expect_ordinary;

// The base recipe of a fuzzed sweep.
constexpr const char* kRecipe =
    "[model]\npreset = \"nanogpt-cpu\"\n[data]\ntrain = [\"recipe.toml\"]\n"
    "[objective]\nkind = \"causal_lm\"\n[train]\nsteps = 1\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFolder folder;
  static const bool in_folder = [] {
    folder.write("recipe.toml", kRecipe);
    std::filesystem::current_path(folder.path());  // sweeps name their recipe relative to it
    return true;
  }();
  if (!in_folder) return 0;
  const auto parts = fuzz::split_at_nul({reinterpret_cast<const char*>(data), size});
  const std::string toml(parts.first);
  const std::vector<std::string> sets(parts.second.empty() ? 0 : 1, std::string(parts.second));
  expect_ordinary([&] { resolved_settings(parse_recipe(toml, "input", sets)); });
  const std::string sweep = folder.write("sweep.toml", toml);
  expect_ordinary([&] { plan_sweep({.file = sweep, .set = sets, .out = "out"}); });
  return 0;
}
