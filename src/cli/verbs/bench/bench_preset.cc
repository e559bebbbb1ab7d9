#include "cli/verbs/bench/bench_preset.h"

#include "cli/table.h"
#include "heed/error.h"
#include "heed/model_files.h"

namespace heed::cli {

void add_preset_flags(Command command, std::string& preset, double& seconds) {
  add_text(command, "--preset", preset, "NAME", "model preset (see heed presets)");
  add_number(command, "--seconds", seconds, {.min = 0.001, .max = 3600},
             "measuring time; the best batch counts");
}

void add_type_flag(Command command, std::string& type) {
  add_text(command, "--type", type, "TYPE", "weight type: f32, " + weight_type_choices());
}

void require_preset(const std::string& preset, const std::string& topic,
                    const std::string& example) {
  if (!preset.empty()) return;
  const std::string command = "heed bench " + topic;
  throw Error(ErrorCode::invalid_argument, command + ": --preset is missing",
              command + " --preset " + example);
}

std::string run_text(const PresetBench& bench, const std::string& tokens_of) {
  return "threads " + std::to_string(bench.threads) + ", instruction set " + bench.instruction_set +
         ", " + fixed(static_cast<double>(bench.parameters) / 1e6, 2) + " M parameters, " +
         std::to_string(bench.tokens) + " " + tokens_of + "\n";
}

std::string limit_text(double gflops, double fraction, double limit) {
  // The fraction is the median over the turns, not the quotient of the two best values.
  return fixed(gflops, 1) + " GFLOP/s at best (GEMM " + fixed(limit, 1) + "), turn by turn " +
         fixed(100 * fraction, 0) + " % of the GEMM beside it";
}

nlohmann::ordered_json preset_json(const PresetBench& bench, const nlohmann::ordered_json& own) {
  nlohmann::ordered_json document = {{"threads", bench.threads},
                                     {"instruction_set", bench.instruction_set},
                                     {"parameters", bench.parameters},
                                     {"tokens", bench.tokens},
                                     {"tokens_per_second", bench.tokens_per_second}};
  document.update(own);
  document.update({{"gflops", bench.gflops},
                   {"gemm_limit_gflops", bench.gemm_limit_gflops},
                   {"fraction_of_limit", bench.fraction_of_limit},
                   {"peak_rss_bytes", bench.peak_rss_bytes}});
  return document;
}

}  // namespace heed::cli
