#include "train/run/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/process_memory.h"
#include "base/text/number_text.h"
#include "heed/error.h"
#include "heed/tokenizer.h"
#include "train/run/folder_lock.h"
#include "train/run/resume.h"

namespace heed {
namespace {

// Steps of `epochs` passes over the corpus.
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

class StreamSource final : public BatchSource {
 public:
  StreamSource(BatchStream& training, BatchStream* validation)
      : training_(training), validation_(validation) {}

  TrainingBatch next(Cursor& cursor) override { return training_.next(cursor); }
  TrainingBatch largest_batch() override { return training_.largest_batch(); }
  bool has_validation() const override { return validation_ != nullptr; }
  TrainingBatch next_validation(Cursor& cursor) override { return validation_->next(cursor); }

 private:
  BatchStream& training_;
  BatchStream* validation_;
};

}  // namespace

TrainingRun::TrainingRun(const TrainOptions& options, Recipe recipe, Ranks& ranks)
    : options_(options), recipe_(std::move(recipe)), pool_(options.threads), ranks_(ranks) {}

TrainResult TrainingRun::run() {
  make_folder(recipe_.train.out);
  std::optional<FolderLock> lock;
  if (ranks_.first()) {
    refuse_foreign_model(recipe_.train.out);
    lock.emplace(recipe_.train.out);
  }
  if (const std::optional<TrainResult> before = finished_before()) return *before;
  keep_seed();
  try {
    prepare_run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
    return stopped();
  }
  StreamSource batches(*data_.training, data_.validation.get());
  TrainResult result = Trainer(trainer_options(batches)).run();
  if (options_.memory_bytes > 0 &&
      result.peak_rss_bytes > std::max(options_.memory_bytes, prepared_peak_bytes_)) {
    note("note: peak memory was " + megabytes(result.peak_rss_bytes) + ", more than the " +
         megabytes(options_.memory_bytes) + " of --memory");
  }
  return result;
}

std::optional<TrainResult> TrainingRun::finished_before() {
  std::optional<TrainResult> result;
  if (ranks_.first()) result = finished_result(recipe_);
  if (ranks_.broadcast(int64_t{result.has_value()}) == 0) return std::nullopt;
  if (!result) result.emplace();
  result->rank = ranks_.rank(), result->ranks = ranks_.size();
  return result;
}

void TrainingRun::keep_seed() {
  uint64_t seed = recipe_.train.seed;
  if (ranks_.first()) seed = checkpoint_seed(recipe_.train.out).value_or(seed);
  seed = static_cast<uint64_t>(ranks_.broadcast(static_cast<int64_t>(seed)));
  if (seed == recipe_.train.seed) return;
  note("note: resuming with seed " + std::to_string(seed) + ", with which this training began");
  recipe_.train.seed = seed;
  recipe_.origins["train.seed"] = "the checkpoint";
}

void TrainingRun::prepare_run() {
  share_batches();
  prepare_data();
  make_networks();
  if (data_.validation && options_.validator) {
    examples_ = read_validation_examples(data_.validation_corpus, recipe_);
  }
  network_->set_activation_checkpointing(recipe_.train.recompute == Recompute::on);
  if (options_.memory_bytes > 0) fit_memory();
  if (recipe_.train.steps == 0) {
    recipe_.train.steps =
        steps_of(*data_.training, recipe_.train.epochs, recipe_.train.accumulate / ranks_.size());
  }
  check_stop();
}

// Called between the parts of the preparation, which may take minutes. Several ranks stop together,
// at their first step.
void TrainingRun::check_stop() const {
  if (!ranks_.alone() || !options_.stop || !options_.stop->load()) return;
  throw Error(ErrorCode::cancelled, "stopped before the first step");
}

TrainResult TrainingRun::stopped() const {
  TrainResult result;
  result.folder = recipe_.train.out;
  result.steps = checkpoint_steps(recipe_.train.out);
  result.peak_rss_bytes = peak_rss_bytes();
  return result;
}

void TrainingRun::note(std::string_view text) const {
  if (options_.note && ranks_.first()) options_.note(text);
}

// The first rank trains the tokenizer and tokenizes; the others then find the files.
void TrainingRun::prepare_data() {
  const auto read = [this] {
    const auto note_and_check = [this](std::string_view text) {
      note(text);
      check_stop();
    };
    data_ = prepare(recipe_, recipe_.train.out, options_.threads, note_and_check,
                    {.rank = ranks_.rank(), .ranks = ranks_.size()});
  };
  if (ranks_.first()) read();
  ranks_.barrier();
  if (!ranks_.first()) read();
  check_same_data();
}

// A folder that is not shared, or a file that differs, would mix two trainings.
void TrainingRun::check_same_data() const {
  const std::array mine{data_.training->examples(), data_.training->corpus_tokens(),
                        int64_t{data_.tokenizer->vocabulary_size()}};
  bool same = true;
  for (const int64_t number : mine) same = ranks_.broadcast(number) == number && same;
  if (same) return;
  throw Error(ErrorCode::invalid_argument,
              "training data and tokenizer must be the same on all ranks",
              "put the data and --out into a folder that all machines share");
}

// A recipe defines the step; ranks share its batches. If there are too few, they become smaller.
void TrainingRun::share_batches() {
  if (recipe_.train.accumulate % ranks_.size() == 0) return;
  set_batches(recipe_, divide_step(batches_of(recipe_), recipe_.train.accumulate, ranks_.size()),
              "mpirun");
  note("ranks: " + std::to_string(ranks_.size()) + ", so a step has " +
       std::to_string(recipe_.train.accumulate) + " batches of " +
       std::to_string(recipe_.data.batch_tokens) + " tokens");
}

void TrainingRun::make_networks() {
  std::optional<Network> from;
  if (!recipe_.model.from.empty()) from.emplace(Network::load(recipe_.model.from));
  if (!recipe_.objective.teacher.empty()) {
    teacher_.emplace(Network::load(recipe_.objective.teacher));
    check_same_pieces(*data_.tokenizer, recipe_.objective.teacher, "the teacher", "the student");
  }
  std::vector<std::string> initialized;
  network_.emplace(
      network_from(data_.config, from ? &*from : nullptr, recipe_.train.seed, initialized));
  network_->add_gradients(gradient_memory(recipe_.optimizer, recipe_.train.accumulate));
  note("model: " + std::to_string(parameter_count(data_.config)) + " parameters, " +
       network_->hugging_face().model_type);
  if (!initialized.empty()) {
    note("model: " + std::to_string(initialized.size()) + " weights are newly initialized, first " +
         initialized.front());
  }
}

void TrainingRun::fit_memory() {
  prepared_peak_bytes_ = peak_rss_bytes();
  StepPlanner planner({.network = *network_,
                       .teacher = teacher(),
                       .pool = pool_,
                       .ranks = ranks_,
                       .recipe = recipe_,
                       .limit_bytes = options_.memory_bytes},
                      data_.training->largest_batch());
  const StepBatches chosen = planner.choose();
  if (chosen != batches_of(recipe_)) use_batches(chosen);
  const StepPlan plan = planner.finish(data_.training->largest_batch());
  decoding_bytes_ = plan.decoding_bytes;
  note("plan for " + megabytes(options_.memory_bytes) + ": " + megabytes(plan.fixed_bytes) +
       " for weights, optimizer state and the program, " + megabytes(plan.activation_bytes) +
       " for batches of " + std::to_string(recipe_.data.batch_tokens) + " tokens, " +
       std::to_string(recipe_.train.accumulate) + " to a step" +
       (plan.recompute ? ", layers recomputed in backward" : ""));
  // Reading the corpus and training a tokenizer are not planned.
  if (prepared_peak_bytes_ > options_.memory_bytes) {
    note("note: preparing needed " + megabytes(prepared_peak_bytes_) +
         ", which --memory does not limit: train the tokenizer elsewhere (heed tokenizer train) "
         "and give it as tokenizer.from");
  }
}

// Validation has batches of the same size, and more of them if their number is limited.
void TrainingRun::use_batches(const StepBatches& b) {
  int64_t& most = recipe_.validate.batches;
  const int64_t before = recipe_.train.accumulate;
  if (most > 0) most = (most * b.accumulate + before - 1) / before;
  set_batches(recipe_, b, "--memory");
  data_.stream_options.labels = data_.training->labels();
  for (StreamOptions* options : {&data_.stream_options, &data_.validation_options}) {
    options->batch_tokens = b.batch_tokens;
    options->batch_sentences = b.batch_sentences;
  }
  data_.training = std::make_unique<BatchStream>(data_.stream_options, data_.tokenizer);
  if (data_.validation) {
    data_.validation = std::make_unique<BatchStream>(data_.validation_options, data_.tokenizer);
  }
}

ValidationOptions TrainingRun::validation_options() const {
  return {.section = recipe_.validate,
          .request = {.objective = std::string(name_of(recipe_.objective.options.kind)),
                      .examples = examples_,
                      .source_prefix = data_.validation_corpus.source_prefix,
                      .target_prefix = data_.validation_corpus.target_prefix,
                      .tokenize = recipe_.validate.tokenize,
                      .max_tokens = data_.stream_options.filters.max_tokens,
                      .samples = recipe_.validate.samples,
                      .threads = options_.threads,
                      .kv_memory_bytes = static_cast<uint64_t>(decoding_bytes_)},
          .validator = options_.validator};
}

// What the report says beside the settings.
RunFacts TrainingRun::report_facts() const {
  const auto corpus_text = [](const BatchStream& stream, const CorpusOptions& corpus) {
    std::string text = std::to_string(stream.examples()) + " examples, " +
                       std::to_string(stream.corpus_tokens()) + " tokens";
    for (const std::string& file : corpus.files) {
      text += (&file == corpus.files.data() ? ": " : ", ") +
              std::filesystem::path(file).filename().string();
    }
    return text;
  };
  RunFacts facts{{"recipe", recipe_.path},
                 {"objective", std::string(name_of(recipe_.objective.options.kind))}};
  std::vector<CorpusOptions> corpora = recipe_.data.corpora;
  if (corpora.empty()) corpora = {recipe_.data.corpus};
  CorpusOptions joined;
  for (const CorpusOptions& corpus : corpora) {
    joined.files.insert(joined.files.end(), corpus.files.begin(), corpus.files.end());
  }
  facts.emplace_back("training data", corpus_text(*data_.training, joined));
  if (data_.validation) {
    facts.emplace_back("validation data", corpus_text(*data_.validation, data_.validation_corpus));
  }
  std::error_code failed;
  facts.emplace_back("Git revision", git_revision(std::filesystem::current_path(failed)));
  const RunFacts machine = machine_facts(pool_.threads());
  facts.insert(facts.end(), machine.begin(), machine.end());
  if (!ranks_.alone()) facts.emplace_back("ranks", std::to_string(ranks_.size()));
  return facts;
}

TrainerOptions TrainingRun::trainer_options(BatchSource& batches) {
  return {
      .network = *network_,
      .teacher = teacher(),
      .pool = pool_,
      .batches = batches,
      .ranks = &ranks_,
      .folder = recipe_.train.out,
      .save_beside_model =
          [this](const std::string& folder) {
            data_.tokenizer->save(folder);
            write_task(folder, recipe_.objective.options.kind, data_.training->labels(),
                       has_text_pairs(recipe_));
            write_generation_config(folder, recipe_, data_.config);
          },
      .settings = {.train = recipe_.train,
                   .loss = recipe_.objective.loss,
                   .optimizer = recipe_.optimizer,
                   .schedule = recipe_.schedule,
                   .list = resolved_settings(recipe_, &data_.config)},
      .facts = report_facts(),
      .validation = validation_options(),
      .callbacks = {.progress = options_.progress, .note = options_.note, .stop = options_.stop}};
}

}  // namespace heed
