// The folders of a sweep's rows: which settings each was trained with, and what came out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/sweep.h"

namespace heed {

// The "section.key=value" of a row, over the recipe.
std::vector<std::string> sets_of(const SweepPlan& plan, const SweepRow& row);
std::string folder_of(const SweepPlan& plan, const SweepRow& row);
TrainOptions train_options(const SweepPlan& plan, const SweepRow& row);

// Gives a row whose settings changed since its folder was begun another folder: resuming there would
// report what the old settings have learnt.
void choose_folders(SweepPlan& plan);

// Writes the row's settings when it begins, and settings and result when it has finished.
void write_settings(const SweepPlan& plan, const SweepRow& row);
void write_result(const SweepPlan& plan, const SweepRow& row, const TrainResult& result);
// Nothing if the row was not finished with these settings.
std::optional<TrainResult> finished_result(const SweepPlan& plan, const SweepRow& row);

// Replaces a file as a whole.
void write_whole(const std::string& path, const std::string& text);

}  // namespace heed
