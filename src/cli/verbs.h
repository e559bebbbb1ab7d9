// All of Heed's verbs.
#pragma once

#include "cli/program.h"

namespace heed::cli {

void add_verbs(Program& program);

}  // namespace heed::cli
