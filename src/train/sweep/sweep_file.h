// Reads a sweep's TOML file.
#pragma once

#include <string>

#include "heed/sweep.h"

namespace heed {

// The file's rows in its order. `columns` and `out` may be empty. Throws not_found, or
// invalid_argument with the line.
SweepPlan read_sweep_file(const std::string& path);

}  // namespace heed
