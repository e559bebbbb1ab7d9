// The parts of heed bench that have files of their own.
#pragma once

#include "cli/program.h"

namespace heed::cli {

void add_bench_encode(Program& program, CLI::App& bench);
void add_bench_generate(Program& program, CLI::App& bench);
void add_bench_layers(Program& program, CLI::App& bench);
void add_bench_train(Program& program, CLI::App& bench);
void add_bench_translate(Program& program, CLI::App& bench);

}  // namespace heed::cli
