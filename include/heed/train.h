// Training: a recipe in, a model folder out.
//
//   heed::TrainOptions options{.recipe = "recipes/multi30k-en-de.toml", .out = "run"};
//   options.validator = heed::decoding_validator();      // BLEU and chrF, beside the loss
//   heed::TrainResult result = heed::train(options);
//
// OUT/ gets config.json, model.safetensors and the tokenizer's files, and beside them checkpoints/,
// log.jsonl, events/ (for TensorBoard) and report.html. A second run resumes from the last
// checkpoint, bit for bit as if it had not stopped; nothing is deleted.
//
// All functions throw heed::Error. Only one train() may run for one OUT. Signal handlers that may run
// meanwhile need an alternate stack (sigaltstack, SA_ONSTACK): see src/cli/training_display.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// ---- Validation by decoding --------------------------------------------------------------------
//
// Training itself computes losses only. The validator gets a model folder and examples, and its
// metrics are logged; it is a function, so that training does not depend on inference.
// decoding_validator() decodes as `heed translate`, `classify`, `tag` and `parse` do, and its scores
// are those of `heed eval`.

// One example of the validation files, as text.
struct ValidationExample {
  std::string source{};                 // the text; of tagging, empty
  std::optional<std::string> second{};  // of a pair that has a label
  std::string target{};                 // translation, linear tree, label or number
  std::vector<std::string> words{};     // of tagging and parsing
  std::vector<std::string> tags{};      // of tagging, one a word
};

struct ValidationRequest {
  std::string model{};      // a folder; its generation_config.json has the search options
  std::string objective{};  // as in recipes: "translation"
  std::span<const ValidationExample> examples{};
  std::string source_prefix{}, target_prefix{};  // as in recipes
  std::string tokenize = "13a";                  // of BLEU
  int64_t max_tokens = 0;                        // longer texts are truncated; 0: max_positions
  int samples = 3;
  int threads = 0;
  uint64_t kv_memory_bytes = uint64_t{1} << 30;
  // If it becomes true, throw cancelled soon. A validator that ignores it is waited for.
  const std::atomic<bool>* stop = nullptr;
};

struct ValidationScores {
  // By objective: translation bleu, chrf, exact (the fraction of exact matches);
  // classification accuracy, f1 (mean of the classes), matthews; regression pearson, spearman;
  // tagging accuracy and, where tags mark spans, f1; parsing f1. BLEU, chrF and the f1 of spans and
  // brackets are percentages.
  std::map<std::string, double> metrics{};
  std::vector<std::string> samples{};  // decoded examples to show
};

using Validator = std::function<ValidationScores(const ValidationRequest&)>;

// Throws what loading and decoding throw. Other objectives have no metrics; causal_lm has samples.
Validator decoding_validator();

// ---- Training ----------------------------------------------------------------------------------

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
  std::vector<std::string> set{};  // "section.key=value", overrides the recipe
  std::string out{};               // overrides train.out
  std::optional<uint64_t> seed{};  // overrides train.seed
  int64_t memory_bytes = 0;        // > 0: memory limit; chooses the batch size
  int threads = 0;                 // 0: every CPU this process may use
  std::function<void(const TrainProgress&)> progress{};
  std::function<void(std::string_view)> note{};  // one line of progress text
  const std::atomic<bool>* stop = nullptr;       // if it becomes true: save, and return
  Validator validator{};                         // decoding_validator(); none: losses only
  // This process is one of several that mpirun started: they share the batches of each step, and the
  // first one writes. Throws unsupported if Heed was built without MPI.
  bool mpi = false;
};

struct TrainResult {
  std::string folder;
  int rank = 0, ranks = 1;    // of this process, among those that trained
  int64_t steps = 0;          // in total
  bool finished = false;      // false: stopped before the end
  bool was_finished = false;  // by an earlier run: nothing was done
  // Of a run that was finished: settings that it did not have, "train.seed was 1, is now 2".
  std::vector<std::string> changed_settings{};
  double seconds = 0;  // spent in steps, in total
  int64_t tokens = 0;
  double loss = 0;                           // of the last step
  std::map<std::string, double> validation;  // of the final model: "loss", "accuracy", …
  std::optional<double> best_metric;
  int64_t best_step = 0;
  int64_t parameters = 0;
  int64_t planned_bytes = 0;   // planned before step 1
  int64_t peak_rss_bytes = 0;  // measured
};
TrainResult train(const TrainOptions& options);

// Every value that the recipe resolves to.
struct TrainSetting {
  std::string section, key;
  std::string value;   // as in TOML
  std::string origin;  // "default", "recipe.toml:12", "--set", "preset gpt2"
  std::string help;
  std::vector<std::string> values{};  // all that are possible; empty: any of the value's type
};
std::vector<TrainSetting> train_settings(const TrainOptions& options);

// "4GB", "512 MiB" or a number of bytes.
int64_t parse_bytes(const std::string& text);

}  // namespace heed
