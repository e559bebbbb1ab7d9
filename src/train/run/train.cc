#include "heed/train.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "heed/error.h"
#include "train/ranks/ranks.h"
#include "train/recipe/recipe.h"
#include "train/run/run.h"

namespace heed {
namespace {

// How long the other ranks wait for the first one to report an error.
constexpr std::chrono::seconds kFirstReports{10};

Recipe recipe_of(const TrainOptions& options) {
  Recipe recipe = read_recipe(options.recipe, options.set);
  if (!options.out.empty()) {
    recipe.train.out = options.out;
    recipe.origins["train.out"] = "--out";
  }
  if (options.seed) {
    recipe.train.seed = *options.seed;
    recipe.origins["train.seed"] = "--seed";
  }
  if (recipe.train.out.empty()) {
    recipe.train.out = "runs/" + std::filesystem::path(options.recipe).stem().string();
  }
  return recipe;
}

}  // namespace

TrainResult train(const TrainOptions& options) {
  if (!options.mpi) {
    Ranks alone;
    return TrainingRun(options, recipe_of(options), alone).run();
  }
  Ranks ranks(open_mpi());
  try {
    TrainResult result = TrainingRun(options, recipe_of(options), ranks).run();
    ranks.barrier();
    return result;
  } catch (const Error& error) {
    if (ranks.first()) throw;
    // Most errors occur on all ranks. The first one reports and ends, which ends all; another rank
    // reports only what the first has not found.
    std::this_thread::sleep_for(kFirstReports);
    throw Error(error.code(), "rank " + std::to_string(ranks.rank()) + ": " + error.what(),
                error.hint());
  }
}

std::vector<TrainSetting> train_settings(const TrainOptions& options) {
  return resolved_settings(recipe_of(options));
}

}  // namespace heed
