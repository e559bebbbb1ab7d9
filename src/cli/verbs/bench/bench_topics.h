// Topics of heed bench in other files.
#pragma once

#include "cli/program.h"

namespace heed::cli {

void add_bench_encode(Command bench);
void add_bench_generate(Command bench);
void add_bench_layers(Command bench);
void add_bench_train(Command bench);
void add_bench_translate(Command bench);

}  // namespace heed::cli
