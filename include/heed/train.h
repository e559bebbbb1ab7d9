// Training: a recipe in, a model folder out.
//
//   heed::TrainResult result = heed::train({.recipe = "recipes/shakespeare-char.toml", .out =
//   "run"});
//
// OUT/ gets config.json, model.safetensors and the tokenizer's files, and beside them checkpoints/,
// log.jsonl, TensorBoard's event files and report.html. Running the same again goes on from the
// last checkpoint, bit for bit as if it had never stopped; nothing is ever wiped.
//
// All functions throw heed::Error. train() is not re-entrant for one OUT. Signal handlers that may
// run meanwhile need a stack of their own (sigaltstack, SA_ONSTACK): see
// src/cli/training_display.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/validate.h"

namespace heed {

// After every step.
struct TrainProgress {
  int64_t step = 0, steps = 0;
  double loss = 0;  // of this step
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  double tokens_per_second = 0;
  double remaining_seconds = 0;
  uint64_t epoch = 0;
};

struct TrainOptions {
  std::string recipe;              // a TOML file
  std::vector<std::string> set{};  // "section.key=value", over the recipe
  std::string out{};               // over train.out
  std::optional<uint64_t> seed{};  // over train.seed
  int64_t memory_bytes = 0;        // > 0: the most to use; chooses the batch size
  int threads = 0;                 // 0: every CPU this process may use
  std::function<void(const TrainProgress&)> progress{};
  std::function<void(std::string_view)> note{};  // one line about what is going on
  const std::atomic<bool>* stop = nullptr;       // becomes true: save, and return
  Validator validator{};                         // decoding_validator(); none: losses only
  // This process is one of several that mpirun has started: they share the batches of each step,
  // and the first one writes. Throws unsupported where Heed was built without MPI.
  bool mpi = false;
};

struct TrainResult {
  std::string folder;
  int rank = 0, ranks = 1;    // of this process, among those that trained
  int64_t steps = 0;          // done, in all
  bool finished = false;      // false: stopped before the end
  bool was_finished = false;  // before, and asked for no more: nothing was done
  double seconds = 0;         // spent in steps, in all
  int64_t tokens = 0;
  double loss = 0;                           // of the last step
  std::map<std::string, double> validation;  // of the final model: "loss", "accuracy", …
  std::optional<double> best_metric;
  int64_t best_step = 0;
  int64_t parameters = 0;
  int64_t planned_bytes = 0;   // of memory, before step 1
  int64_t peak_rss_bytes = 0;  // in truth
};
TrainResult train(const TrainOptions& options);

// Every value that the recipe resolves to.
struct TrainSetting {
  std::string section, key;
  std::string value;   // as in TOML
  std::string origin;  // "default", "recipe.toml:12", "--set", "preset gpt2"
  std::string help;
};
std::vector<TrainSetting> train_settings(const TrainOptions& options);

// "4GB", "512 MiB" or a number of bytes.
int64_t parse_bytes(const std::string& text);

}  // namespace heed
