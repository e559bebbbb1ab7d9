// What include/heed/train.h declares: a recipe, prepared and handed to the trainer.
#include "heed/train.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "heed/error.h"
#include "train/folder_lock.h"
#include "train/memory_plan.h"
#include "train/preparation.h"
#include "train/ranks.h"
#include "train/trainer.h"

namespace heed {
namespace {

Recipe recipe_of(const TrainOptions& options) {
  Recipe recipe = read_recipe(options.recipe, options.set);
  if (!options.out.empty()) {
    recipe.train.out = options.out;
    recipe.origins["train.out"] = "--out";
  }
  if (options.seed) {
    recipe.train.seed = *options.seed;
    recipe.origins["train.seed"] = "--seed";
  }
  if (recipe.train.out.empty()) {
    recipe.train.out = "runs/" + std::filesystem::path(options.recipe).stem().string();
  }
  return recipe;
}

int64_t current_rss_bytes() {
  std::ifstream file("/proc/self/statm");  // pages: all, then those in memory
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// How long the other ranks leave it to the first one to report an error.
constexpr std::chrono::seconds kFirstReports{2};

// Under a limit, decoding gets what activations leave to it, but no less than a sentence needs.
constexpr int64_t kLeastDecodingBytes = 16 << 20;

// How many steps `epochs` passes over the corpus are.
int64_t steps_of(BatchStream& stream, double epochs, int accumulate) {
  Cursor cursor;
  int64_t batches = 0;
  while (cursor.epoch == 0) {
    stream.next(cursor);
    ++batches;
  }
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::llround(epochs * static_cast<double>(batches) / accumulate)));
}

int64_t longest_sequence(const TrainingBatch& batch) {
  int64_t longest = 1;
  for (const Rows* rows : {&batch.input, &batch.target}) {
    for (size_t s = 1; s < rows->offsets.size(); ++s) {
      longest = std::max<int64_t>(longest, rows->offsets[s] - rows->offsets[s - 1]);
    }
  }
  return longest;
}

std::string megabytes(int64_t bytes) { return std::to_string(bytes / 1'000'000) + " MB"; }

// One training from its recipe to its end.
class Training {
 public:
  Training(const TrainOptions& options, Ranks& ranks)
      : options_(options), recipe_(recipe_of(options)), pool_(options.threads), ranks_(ranks) {}

  TrainResult run() {
    make_folder(recipe_.train.out);
    std::optional<FolderLock> lock;
    if (ranks_.first()) lock.emplace(recipe_.train.out);
    share_batches();
    prepare_data();
    make_networks();
    if (data_.validation && options_.validator) {
      examples_ = read_validation_examples(data_.validation_corpus, recipe_);
    }
    network_->recompute_layers(recipe_.train.recompute == Recompute::on);
    if (options_.memory_bytes > 0) fit_memory();
    if (recipe_.train.steps == 0) {
      recipe_.train.steps =
          steps_of(*data_.training, recipe_.train.epochs, recipe_.train.accumulate / ranks_.size());
    }
    return Trainer(trainer_options()).run();
  }

 private:
  void note(std::string_view text) const {
    if (options_.note && ranks_.first()) options_.note(text);
  }

  // The first rank alone learns the tokenizer and tokenises; the others then find it done.
  void prepare_data() {
    const auto read = [this] {
      data_ = prepare(recipe_, recipe_.train.out, options_.threads,
                      [this](std::string_view text) { note(text); },
                      {.rank = ranks_.rank(), .ranks = ranks_.size()});
    };
    if (ranks_.first()) read();
    ranks_.barrier();
    if (!ranks_.first()) read();
    check_same_data();
  }

  // A folder that only one machine sees, or a file that differs, would teach nonsense.
  void check_same_data() const {
    const std::array mine{data_.training->examples(), data_.training->corpus_tokens(),
                          int64_t{data_.tokenizer->vocabulary_size()}};
    bool same = true;
    for (const int64_t number : mine) same = ranks_.broadcast(number) == number && same;
    if (same) return;
    throw Error(ErrorCode::invalid_argument,
                "this machine's training data or tokenizer is another than the first rank's",
                "put the data and --out into a folder that all machines share");
  }

  // A recipe says what a step is; ranks only share its batches. Where these are too few, they are
  // made smaller.
  void share_batches() {
    const int ranks = ranks_.size(), before = recipe_.train.accumulate;
    if (before % ranks == 0) return;
    const int parts = (before + ranks - 1) / ranks * ranks;
    const auto smaller = [&](int64_t whole) {
      return std::max<int64_t>(1, (whole * before + parts - 1) / parts);
    };
    recipe_.data.batch_tokens = smaller(recipe_.data.batch_tokens);
    if (recipe_.data.batch_sentences > 0) {
      recipe_.data.batch_sentences = smaller(recipe_.data.batch_sentences);
    }
    recipe_.train.accumulate = parts;
    for (const char* key : {"data.batch_tokens", "data.batch_sentences", "train.accumulate"}) {
      recipe_.origins[key] = "mpirun";
    }
    note("ranks: " + std::to_string(ranks) + ", so a step is " + std::to_string(parts) +
         " batches of " + std::to_string(recipe_.data.batch_tokens) + " tokens");
  }

  void make_networks() {
    std::optional<Network> from;
    if (!recipe_.model.from.empty()) from.emplace(Network::load(recipe_.model.from));
    if (!recipe_.objective.teacher.empty()) {
      teacher_.emplace(Network::load(recipe_.objective.teacher));
    }
    std::vector<std::string> fresh;
    network_.emplace(
        network_from(data_.config, from ? &*from : nullptr, recipe_.train.seed, fresh));
    network_->add_gradients();
    note("model: " + std::to_string(parameter_count(data_.config)) + " parameters, " +
         network_->hugging_face().model_type);
    if (!fresh.empty()) {
      note("model: " + std::to_string(fresh.size()) + " weights begin anew, first " +
           fresh.front());
    }
  }

  const Network* teacher() const { return teacher_ ? &*teacher_ : nullptr; }

  // Fewer tokens in a batch, and more batches in a step: the weights take the same way.
  void fit_memory() {
    const auto bytes_of = [](const Network& n) {
      return static_cast<int64_t>(n.parameters().all_values().size_bytes());
    };
    const int64_t teacher_bytes = teacher_ ? bytes_of(*teacher_) : 0;
    // What is here already of that which the plan counts itself: values and gradients.
    const int64_t counted = 2 * bytes_of(*network_) + teacher_bytes;
    StepRunner runner({.network = *network_,
                       .pool = pool_,
                       .teacher = teacher(),
                       .loss = recipe_.objective.loss});
    MemoryPlan plan =
        plan_memory(runner, *network_,
                    {.limit_bytes = options_.memory_bytes,
                     .wanted_tokens = recipe_.data.batch_tokens,
                     .longest = longest_sequence(data_.training->largest_batch()),
                     .teacher_bytes = teacher_bytes,
                     .process_bytes = std::max<int64_t>(current_rss_bytes() - counted, 0),
                     .running_average = recipe_.optimizer.ema_decay > 0,
                     .recompute = recipe_.train.recompute});
    plan.batch_tokens = ranks_.broadcast(plan.batch_tokens);
    plan.recompute = ranks_.broadcast(int64_t{plan.recompute}) != 0;
    network_->recompute_layers(plan.recompute);
    if (plan.batch_tokens < recipe_.data.batch_tokens) shrink_batches(plan.batch_tokens);
    decoding_bytes_ = std::max(plan.activation_bytes, kLeastDecodingBytes);
    note("plan for " + megabytes(options_.memory_bytes) + ": " + megabytes(plan.weight_bytes) +
         " for the weights and their slots, " + megabytes(plan.activation_bytes) +
         " for batches of " + std::to_string(recipe_.data.batch_tokens) + " tokens, " +
         std::to_string(recipe_.train.accumulate) + " to a step" +
         (plan.recompute ? ", layers run again in backward" : ""));
    // Not planned, but over by now: reading the corpus, and SentencePiece's own memory.
    const int64_t before = peak_rss_bytes();
    if (before > options_.memory_bytes) {
      note("note: preparing took " + megabytes(before) +
           " at one time, which --memory does not plan: learn the tokenizer elsewhere (heed "
           "tokenizer train) and give it as tokenizer.from");
    }
  }

  void shrink_batches(int64_t tokens) {
    const double wanted = static_cast<double>(recipe_.data.batch_tokens) * recipe_.train.accumulate;
    const int ranks = ranks_.size();
    recipe_.train.accumulate =
        static_cast<int>(std::ceil(wanted / static_cast<double>(tokens) / ranks)) * ranks;
    recipe_.data.batch_tokens = tokens;
    recipe_.origins["data.batch_tokens"] = recipe_.origins["train.accumulate"] = "--memory";
    data_.stream_options.batch_tokens = tokens;
    data_.stream_options.labels = data_.training->labels();
    data_.training = std::make_unique<BatchStream>(data_.stream_options, data_.tokenizer);
  }

  BatchSource source() {
    BatchSource source;
    source.next = [this](Cursor& cursor) { return data_.training->next(cursor); };
    source.largest = [this] { return data_.training->largest_batch(); };
    if (data_.validation) {
      source.validation = [this](Cursor& cursor) { return data_.validation->next(cursor); };
    }
    return source;
  }

  TrainerOptions trainer_options() {
    return {.network = *network_,
            .pool = pool_,
            .source = source(),
            .folder = recipe_.train.out,
            .train = recipe_.train,
            .validate = recipe_.validate,
            .loss = recipe_.objective.loss,
            .optimizer = recipe_.optimizer,
            .schedule = recipe_.schedule,
            .teacher = teacher(),
            .settings = resolved_settings(recipe_),
            .save_beside_model =
                [this](const std::string& folder) {
                  data_.tokenizer->save(folder);
                  write_task(folder, recipe_.objective.options.kind, data_.training->labels());
                  write_generation_config(folder, recipe_, data_.config);
                },
            .request = {.objective = std::string(name_of(recipe_.objective.options.kind)),
                        .examples = examples_,
                        .source_prefix = data_.validation_corpus.source_prefix,
                        .target_prefix = data_.validation_corpus.target_prefix,
                        .tokenize = recipe_.validate.tokenize,
                        .max_tokens = data_.stream_options.filters.max_tokens,
                        .samples = recipe_.validate.samples,
                        .threads = options_.threads,
                        .kv_memory_bytes = static_cast<uint64_t>(decoding_bytes_)},
            .validator = options_.validator,
            .progress = options_.progress,
            .note = options_.note,
            .stop = options_.stop,
            .ranks = &ranks_};
  }

  const TrainOptions& options_;
  Recipe recipe_;
  ThreadPool pool_;
  Ranks& ranks_;
  Preparation data_;
  std::vector<ValidationExample> examples_;
  int64_t decoding_bytes_ = int64_t{1} << 30;  // for keys and values, when validation decodes
  std::optional<Network> network_, teacher_;
};

}  // namespace

TrainResult train(const TrainOptions& options) {
  if (!options.mpi) {
    Ranks alone;
    return Training(options, alone).run();
  }
  Ranks ranks(open_mpi());
  try {
    TrainResult result = Training(options, ranks).run();
    ranks.barrier();
    return result;
  } catch (const Error& error) {
    if (ranks.first()) throw;
    // Most mistakes are found by all ranks at once. The first reports them, and its end is the end
    // of all; only what it has not found either is left to report.
    std::this_thread::sleep_for(kFirstReports);
    throw Error(error.code(), "rank " + std::to_string(ranks.rank()) + ": " + error.what(),
                error.hint());
  }
}

std::vector<TrainSetting> train_settings(const TrainOptions& options) {
  return resolved_settings(recipe_of(options));
}

}  // namespace heed
