// Shared by the topics of heed bench that run a preset.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/flags.h"
#include "heed/bench.h"

namespace heed::cli {

inline constexpr int kMaxBenchSize = 1 << 20;  // sequences, tokens of each, …

// --preset and --seconds.
void add_preset_flags(Command command, std::string& preset, double& seconds);
void add_type_flag(Command command, std::string& type);
// Throws with an example if --preset is missing.
void require_preset(const std::string& preset, const std::string& topic,
                    const std::string& example);

// "threads 2, instruction set AVX2, 66.1 M parameters, 768 tokens a batch\n"
std::string run_text(const PresetBench& bench, const std::string& tokens_of);
// "113.0 GFLOP/s at best (GEMM 161.4), turn by turn 70 % of the GEMM beside it"
std::string limit_text(double gflops, double fraction, double limit);

// The common members; `own` is inserted between speeds and limits.
nlohmann::ordered_json preset_json(const PresetBench& bench, const nlohmann::ordered_json& own);

}  // namespace heed::cli
