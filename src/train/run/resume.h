// What earlier runs left in OUT.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/train.h"
#include "train/recipe/recipe.h"

namespace heed {

// Throws invalid_argument if OUT holds a model that was not trained there: it would be overwritten.
void refuse_foreign_model(const std::string& out);

// The result of an earlier run that is complete and that the recipe does not ask to prolong; nothing
// otherwise. Other keys that have changed are listed, and have no effect.
std::optional<TrainResult> finished_result(const Recipe& recipe);

// Settings that differ from those of a checkpoint (TrainingState::settings), as
// "train.seed was 1, is now 2".
std::vector<std::string> changed_settings(const std::string& saved,
                                          const std::vector<TrainSetting>& now);

// The seed of the newest checkpoint. A resumed training keeps it: with another one, an epoch would
// have some examples twice and others not at all.
std::optional<uint64_t> checkpoint_seed(const std::string& out);

// Steps of the newest checkpoint; 0 if there is none.
int64_t checkpoint_steps(const std::string& out);

}  // namespace heed
