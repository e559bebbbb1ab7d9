// What include/heed/train.h declares: a recipe, prepared and handed to the trainer.
#include "heed/train.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "base/atomic_file.h"
#include "base/number_text.h"
#include "base/process_memory.h"
#include "heed/error.h"
#include "heed/tokenizer.h"
#include "model/hugging_face/json_values.h"
#include "train/ranks/ranks.h"
#include "train/recipe/preparation.h"
#include "train/run/folder_lock.h"
#include "train/run/memory_plan.h"
#include "train/run/trainer.h"

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

// How long the other ranks leave it to the first one to report an error.
constexpr std::chrono::seconds kFirstReports{10};

// Under a limit, keys and values of decoding get what is left to them, but no less than a sentence
// needs.
constexpr int64_t kDecodingBytes = int64_t{1} << 30, kLeastDecodingBytes = 16 << 20;
// What else decodes: a model's weights, as in the file and as they are laid out for inference, and
// the rows of one run with their scores (EngineOptions::batch_tokens, max_sequences).
constexpr int64_t kDecodingWeights = 2, kDecodingTokens = 1024, kDecodingSequences = 256;

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

int64_t weight_bytes(const Network& network) {
  return static_cast<int64_t>(network.parameters().all_values().size_bytes());
}

// What a step is made of.
struct StepBatches {
  int64_t batch_tokens = 0, batch_sentences = 0, accumulate = 1;
  bool operator==(const StepBatches&) const = default;
};

// What --memory has chosen, as OUT keeps it: how much memory a process has beside its plan varies
// from run to run, but a training that goes on has to go on with its batches.
struct ChosenBatches {
  int64_t memory_bytes = 0;
  StepBatches wanted{}, chosen{};
  bool recompute = false;
  int64_t planned_bytes = 0;  // of the weights, their slots and a batch; 0: it was not kept
};

std::string memory_file(const std::string& out) { return out + "/memory.json"; }

Json to_json(const StepBatches& b) {
  return {{"batch_tokens", b.batch_tokens},
          {"batch_sentences", b.batch_sentences},
          {"accumulate", b.accumulate}};
}

StepBatches batches_from(const Json& json) {
  return {.batch_tokens = whole_at(json, "batch_tokens"),
          .batch_sentences = whole_at(json, "batch_sentences"),
          .accumulate = whole_at(json, "accumulate")};
}

void write_chosen(const std::string& out, const ChosenBatches& c) {
  const Json json{{"memory_bytes", c.memory_bytes},
                  {"wanted", to_json(c.wanted)},
                  {"chosen", to_json(c.chosen)},
                  {"recompute", c.recompute},
                  {"planned_bytes", c.planned_bytes}};
  AtomicFile file(memory_file(out));
  file.write(json.dump(2) + "\n");
  file.commit();
}

// Nothing where none is kept, or it is not readable: it is chosen anew then.
std::optional<ChosenBatches> read_chosen(const std::string& out) {
  std::ifstream file(memory_file(out));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    ChosenBatches c{
        .memory_bytes = whole_at(json, "memory_bytes"),
        .wanted = batches_from(json.at("wanted")),
        .chosen = batches_from(json.at("chosen")),
        .recompute = json.at("recompute").get<bool>(),
        .planned_bytes = json.contains("planned_bytes") ? whole_at(json, "planned_bytes") : 0};
    const bool fine = c.chosen.batch_tokens > 0 && c.chosen.batch_sentences >= 0 &&
                      c.chosen.accumulate > 0 && c.chosen.accumulate <= kMostBatches;
    return fine ? std::optional(c) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Whether a model folder has what a tokenizer is read from, of whatever kind.
bool has_tokenizer_files(const std::string& folder) {
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename();
    if (name == "tokenizer.json" || name == "merges.txt" || name.starts_with("vocab.") ||
        name.ends_with(".model") || name.ends_with(".spm")) {
      return true;
    }
  }
  return false;
}

// What another program, or another command, has put into OUT is nobody's to replace.
void refuse_foreign_model(const std::string& out) {
  namespace fs = std::filesystem;
  // A training's own folder. A log alone is not: a model may be handed on with it.
  if (fs::exists(out + "/checkpoints") || fs::exists(out + "/report.html")) return;
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json",
                           "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!fs::exists(out + "/" + name)) continue;
    throw Error(ErrorCode::invalid_argument,
                out + ": has a model that no training has left there (" + name + ")",
                "choose another --out: this one would be overwritten");
  }
}

// One training from its recipe to its end.
class Training {
 public:
  Training(const TrainOptions& options, Ranks& ranks)
      : options_(options), recipe_(recipe_of(options)), pool_(options.threads), ranks_(ranks) {}

  TrainResult run() {
    make_folder(recipe_.train.out);
    std::optional<FolderLock> lock;
    if (ranks_.first()) {
      refuse_foreign_model(recipe_.train.out);
      lock.emplace(recipe_.train.out);
    }
    if (const std::optional<TrainResult> before = finished_before()) return *before;
    keep_seed();
    try {
      prepare_all();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled) throw;
      return stopped();
    }
    TrainResult result = Trainer(trainer_options()).run();
    if (options_.memory_bytes > 0 &&
        result.peak_rss_bytes > std::max(options_.memory_bytes, prepared_peak_bytes_)) {
      note("note: the most memory was " + megabytes(result.peak_rss_bytes) + ", more than the " +
           megabytes(options_.memory_bytes) + " of --memory");
    }
    return result;
  }

 private:
  // Of a training that came to its end and is asked for no more, whatever else the recipe says by
  // now: nothing is done, and nothing written.
  std::optional<TrainResult> finished_before() {
    std::optional<TrainResult> result;
    if (ranks_.first()) result = read_finished();
    if (ranks_.broadcast(int64_t{result.has_value()}) == 0) return std::nullopt;
    if (!result) result.emplace();
    result->rank = ranks_.rank(), result->ranks = ranks_.size();
    return result;
  }

  std::optional<TrainResult> read_finished() const {
    const std::string& out = recipe_.train.out;
    const std::vector<Checkpoint> saved = Checkpoints(out + "/checkpoints").list();
    if (saved.empty() || !std::filesystem::exists(out + "/model.safetensors")) return std::nullopt;
    const TrainingState& state = saved.back().state;
    if (asks_for_more(state)) return std::nullopt;
    TrainResult result;
    result.folder = out;
    result.steps = state.step;
    result.seconds = state.seconds;
    result.tokens = state.tokens;
    result.best_metric = state.best_metric;
    result.best_step = state.best_step;
    for (const LogRecord& record : read_history(out, state.step)) {
      if (const auto parameters = record.value("parameters")) {
        result.parameters = static_cast<int64_t>(*parameters);
      }
      if (record.kind == "train") result.loss = record.value("loss").value_or(0);
      if (record.kind != "end" || record.step != state.step) continue;
      result.finished = result.was_finished = true;
      result.validation = {record.values.begin(), record.values.end()};
      result.validation.erase("peak_rss_bytes");
      result.peak_rss_bytes = static_cast<int64_t>(record.value("peak_rss_bytes").value_or(0));
    }
    return result.finished ? std::optional(result) : std::nullopt;
  }

  bool asks_for_more(const TrainingState& state) const {
    const int patience = recipe_.validate.patience;
    if (patience > 0 && state.without_better >= patience) return false;
    if (recipe_.train.steps > 0) return state.step < recipe_.train.steps;
    // How many steps an epoch has is not known before the data is read; how many were asked for is.
    const Json settings = Json::parse(state.settings, nullptr, /*allow_exceptions=*/false);
    const std::string before =
        settings.is_object() ? settings.value("train.epochs", std::string()) : std::string();
    double epochs = 0;
    std::from_chars(before.data(), before.data() + before.size(), epochs);
    return recipe_.train.epochs > std::max(epochs, static_cast<double>(state.cursor.epoch));
  }

  // A training that goes on keeps its seed: batches of another one would show it some examples
  // twice in an epoch, and others not at all.
  void keep_seed() {
    uint64_t seed = recipe_.train.seed;
    if (ranks_.first()) {
      const std::vector<Checkpoint> saved = Checkpoints(recipe_.train.out + "/checkpoints").list();
      if (!saved.empty()) seed = saved.back().state.seed;
    }
    seed = static_cast<uint64_t>(ranks_.broadcast(static_cast<int64_t>(seed)));
    if (seed == recipe_.train.seed) return;
    note("note: going on with seed " + std::to_string(seed) + ", as it began");
    recipe_.train.seed = seed;
    recipe_.origins["train.seed"] = "the training as it began";
  }

  void prepare_all() {
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

  // Between the parts of the preparation, which may take minutes. Several ranks stop together, at
  // their first step.
  void check_stop() const {
    if (!ranks_.alone() || !options_.stop || !options_.stop->load()) return;
    throw Error(ErrorCode::cancelled, "stopped before the first step");
  }

  TrainResult stopped() const {
    TrainResult result;
    result.folder = recipe_.train.out;
    const std::vector<Checkpoint> saved = Checkpoints(result.folder + "/checkpoints").list();
    if (!saved.empty()) result.steps = saved.back().state.step;
    result.peak_rss_bytes = peak_rss_bytes();
    return result;
  }

  void note(std::string_view text) const {
    if (options_.note && ranks_.first()) options_.note(text);
  }

  // The first rank alone learns the tokenizer and tokenises; the others then find it done.
  void prepare_data() {
    const auto read = [this] {
      const auto told = [this](std::string_view text) {
        note(text);
        check_stop();
      };
      data_ = prepare(recipe_, recipe_.train.out, options_.threads, told,
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
    if (recipe_.train.accumulate % ranks_.size() == 0) return;
    set_batches(divided(batches(), recipe_.train.accumulate), "mpirun");
    note("ranks: " + std::to_string(ranks_.size()) + ", so a step is " +
         std::to_string(recipe_.train.accumulate) + " batches of " +
         std::to_string(recipe_.data.batch_tokens) + " tokens");
  }

  StepBatches batches() const {
    return {recipe_.data.batch_tokens, recipe_.data.batch_sentences, recipe_.train.accumulate};
  }

  void set_batches(const StepBatches& b, const char* origin) {
    recipe_.data.batch_tokens = b.batch_tokens;
    recipe_.data.batch_sentences = b.batch_sentences;
    recipe_.train.accumulate = static_cast<int>(b.accumulate);
    for (const char* key : {"data.batch_tokens", "data.batch_sentences", "train.accumulate"}) {
      recipe_.origins[key] = origin;
    }
  }

  // The same step in at least so many batches, a multiple of the ranks, as much smaller.
  StepBatches divided(const StepBatches& whole, int64_t least_parts) const {
    const int64_t ranks = ranks_.size(), parts = (least_parts + ranks - 1) / ranks * ranks;
    if (parts > kMostBatches) {
      throw Error(ErrorCode::out_of_memory,
                  "a step of " + std::to_string(whole.batch_tokens * whole.accumulate) +
                      " tokens would be " + std::to_string(parts) + " batches, at most " +
                      std::to_string(kMostBatches) + " are possible",
                  "allow more --memory, or lower data.batch_tokens or train.accumulate");
    }
    const auto smaller = [&](int64_t size) {
      return std::max<int64_t>(1, (size * whole.accumulate + parts - 1) / parts);
    };
    return {.batch_tokens = smaller(whole.batch_tokens),
            .batch_sentences = whole.batch_sentences > 0 ? smaller(whole.batch_sentences) : 0,
            .accumulate = parts};
  }

  void make_networks() {
    std::optional<Network> from;
    if (!recipe_.model.from.empty()) from.emplace(Network::load(recipe_.model.from));
    if (!recipe_.objective.teacher.empty()) {
      teacher_.emplace(Network::load(recipe_.objective.teacher));
      check_teacher();
    }
    std::vector<std::string> fresh;
    network_.emplace(
        network_from(data_.config, from ? &*from : nullptr, recipe_.train.seed, fresh));
    network_->add_gradients(gradient_memory(recipe_.optimizer, recipe_.train.accumulate));
    note("model: " + std::to_string(parameter_count(data_.config)) + " parameters, " +
         network_->hugging_face().model_type);
    if (!fresh.empty()) {
      note("model: " + std::to_string(fresh.size()) + " weights begin anew, first " +
           fresh.front());
    }
  }

  // What the teacher says about an id must be about the student's piece of that id.
  void check_teacher() const {
    TokenizerPtr theirs;
    try {
      theirs = load_tokenizer(recipe_.objective.teacher);
    } catch (const Error& error) {
      // Weights alone: nothing to compare.
      const bool unknown =
          error.code() == ErrorCode::not_found || error.code() == ErrorCode::unsupported;
      if (unknown && !has_tokenizer_files(recipe_.objective.teacher)) return;
      throw;
    }
    const int64_t pieces = std::min(theirs->vocabulary_size(), data_.tokenizer->vocabulary_size());
    for (int32_t id = 0; id < pieces; ++id) {
      const std::string mine = data_.tokenizer->piece(id), other = theirs->piece(id);
      if (mine == other) continue;
      throw Error(
          ErrorCode::invalid_argument,
          recipe_.objective.teacher + ": the teacher has another tokenizer: its piece " +
              std::to_string(id) + " is '" + other + "', the student's is '" + mine + "'",
          "give the student the teacher's: tokenizer.from = \"" + recipe_.objective.teacher + "\"");
    }
  }

  const Network* teacher() const { return teacher_ ? &*teacher_ : nullptr; }

  // Fewer tokens in a batch, and more batches in a step: the weights take the same way.
  void fit_memory() {
    prepared_peak_bytes_ = peak_rss_bytes();
    StepRunner runner({.network = *network_,
                       .pool = pool_,
                       .teacher = teacher(),
                       .loss = recipe_.objective.loss});
    const TrainingBatch largest = data_.training->largest_batch();
    const int64_t teacher_bytes = teacher_ ? weight_bytes(*teacher_) : 0;
    // What is here already of that which the plan counts itself: values and kept gradients.
    const GradientMemory memory = network_->parameters().gradient_memory();
    const bool kept = memory == GradientMemory::full;
    const int64_t counted = (kept ? 2 : 1) * weight_bytes(*network_) + teacher_bytes;
    // Where sentences are counted, batches may never come near the tokens they might have.
    const bool counts_sentences = recipe_.data.batch_sentences > 0;
    MemoryPlanOptions limits{
        .limit_bytes = options_.memory_bytes,
        .wanted_tokens = counts_sentences ? std::min(largest.rows(), recipe_.data.batch_tokens)
                                          : recipe_.data.batch_tokens,
        .longest = longest_sequence(largest),
        .largest = &largest,
        .teacher_bytes = teacher_bytes,
        .process_bytes = std::max<int64_t>(current_rss_bytes() - counted, 0),
        .threads = pool_.threads(),
        .bytes_per_weight = bytes_per_weight(recipe_.optimizer, memory),
        .recompute = recipe_.train.recompute};
    ChosenBatches c{.memory_bytes = options_.memory_bytes, .wanted = batches()};
    const bool chooses = ranks_.first() && !take_kept(c);
    if (chooses) choose(runner, limits, c);
    share(c);
    if (recipe_.train.recompute != Recompute::automatic) {
      c.recompute = recipe_.train.recompute == Recompute::on;
    }
    network_->set_activation_checkpointing(c.recompute);
    if (c.chosen != batches()) use_batches(c.chosen);
    use_gradients(gradient_memory(recipe_.optimizer, c.chosen.accumulate), limits);
    const auto activations =
        static_cast<int64_t>(runner.training_bytes(data_.training->largest_batch()));
    const int64_t room = room_for_activations(network_->config(), limits);
    // What else the process has varies, and is no reason to refuse what it began with.
    const int64_t planned = options_.memory_bytes - room - limits.process_bytes + activations;
    if (activations > room) refuse_more(c, planned, activations, room);
    if (chooses) {
      c.planned_bytes = planned;
      write_chosen(recipe_.train.out, c);
    }
    plan_decoding(runner, limits.longest, room);
    note("plan for " + megabytes(options_.memory_bytes) + ": " +
         megabytes(options_.memory_bytes - room) +
         " for the weights, their slots and the program, " + megabytes(activations) +
         " for batches of " + std::to_string(recipe_.data.batch_tokens) + " tokens, " +
         std::to_string(recipe_.train.accumulate) + " to a step" +
         (c.recompute ? ", layers run again in backward" : ""));
    // Not planned, but over by now: reading the corpus, and SentencePiece's own memory.
    if (prepared_peak_bytes_ > options_.memory_bytes) {
      note("note: preparing took " + megabytes(prepared_peak_bytes_) +
           " at one time, which --memory does not plan: learn the tokenizer elsewhere (heed "
           "tokenizer train) and give it as tokenizer.from");
    }
  }

  // Takes what an earlier run of this training has chosen, if it has begun and wanted the same.
  bool take_kept(ChosenBatches& c) const {
    if (Checkpoints(recipe_.train.out + "/checkpoints").list().empty()) return false;
    const std::optional<ChosenBatches> kept = read_chosen(recipe_.train.out);
    if (!kept || kept->wanted != c.wanted || kept->chosen.accumulate % ranks_.size() != 0) {
      return false;
    }
    c = *kept;
    return true;
  }

  // Going on within a smaller limit, or with a loss or slots that take more, would exceed it.
  void refuse_more(const ChosenBatches& c, int64_t planned, int64_t activations,
                   int64_t room) const {
    const bool is_less = options_.memory_bytes < c.memory_bytes;
    const bool takes_more = c.planned_bytes > 0 && planned > c.planned_bytes;
    if (!is_less && !takes_more) return;
    throw Error(ErrorCode::out_of_memory,
                "this training began with " +
                    (is_less ? "--memory " + megabytes(c.memory_bytes)
                             : "a plan of " + megabytes(c.planned_bytes) +
                                   ", with what was changed since it is " + megabytes(planned)) +
                    "; its batches of " + std::to_string(c.chosen.batch_tokens) + " tokens take " +
                    megabytes(activations) + ", " + megabytes(options_.memory_bytes) + " leave " +
                    megabytes(std::max<int64_t>(room, 0)),
                (is_less ? "give as much --memory as before, or remove "
                         : "give more --memory, or remove ") +
                    memory_file(recipe_.train.out) +
                    " to go on with other batches, which is another training");
  }

  void use_gradients(GradientMemory memory, MemoryPlanOptions& limits) {
    if (memory == network_->parameters().gradient_memory()) return;
    network_->add_gradients(memory);
    limits.bytes_per_weight = bytes_per_weight(recipe_.optimizer, memory);
  }

  // A step of several batches has to keep its gradients, which takes room from them. So a step that
  // lends them is tried as a whole, then a step of parts; and layers are run again for either only
  // where nothing else fits.
  MemoryPlan plan_step(StepRunner& runner, MemoryPlanOptions& limits) {
    if (network_->parameters().gradient_memory() == GradientMemory::full) {
      return plan_memory(runner, *network_, limits);
    }
    const bool automatic = limits.recompute == Recompute::automatic;
    const auto plan_with = [&](GradientMemory memory, Recompute recompute) {
      use_gradients(memory, limits);
      MemoryPlanOptions options = limits;
      options.recompute = recompute;
      return plan_if_it_fits(runner, *network_, options);
    };
    const auto is_whole = [&](const std::optional<MemoryPlan>& plan) {
      return plan && plan->batch_tokens >= limits.wanted_tokens;
    };
    std::optional<MemoryPlan> lent =
        plan_with(GradientMemory::pooled, automatic ? Recompute::off : limits.recompute);
    if (is_whole(lent)) return *lent;
    const std::optional<MemoryPlan> kept = plan_with(GradientMemory::full, limits.recompute);
    if (kept && !(automatic && kept->recompute)) return *kept;
    if (automatic) lent = plan_with(GradientMemory::pooled, Recompute::on);
    if (is_whole(lent)) return *lent;
    use_gradients(GradientMemory::full, limits);
    if (kept) return *kept;
    try {
      return plan_memory(runner, *network_, limits);  // which says what is missing
    } catch (const Error& error) {
      if (!lent) throw;
      throw Error(error.code(), error.what(),
                  "allow more --memory, or take smaller steps: one batch of data.batch_tokens = " +
                      std::to_string(lent->batch_tokens) + " keeps no gradients, and fits");
    }
  }

  void choose(StepRunner& runner, MemoryPlanOptions& limits, ChosenBatches& c) {
    const MemoryPlan plan = plan_step(runner, limits);
    c.recompute = plan.recompute;
    c.chosen = c.wanted;
    if (plan.batch_tokens < limits.wanted_tokens) {
      StepBatches whole = c.wanted;
      whole.batch_tokens = limits.wanted_tokens;
      const int64_t tokens = whole.batch_tokens * whole.accumulate;
      c.chosen = divided(whole, (tokens + plan.batch_tokens - 1) / plan.batch_tokens);
    }
  }

  // What the first rank has chosen is what all do.
  void share(ChosenBatches& c) {
    for (int64_t* number : {&c.memory_bytes, &c.planned_bytes, &c.chosen.batch_tokens,
                            &c.chosen.batch_sentences, &c.chosen.accumulate}) {
      *number = ranks_.broadcast(*number);
    }
    c.recompute = ranks_.broadcast(int64_t{c.recompute}) != 0;
  }

  // Validation takes batches of that size too; of those there are more, where they are counted.
  void use_batches(const StepBatches& b) {
    int64_t& most = recipe_.validate.batches;
    const int64_t before = recipe_.train.accumulate;
    if (most > 0) most = (most * b.accumulate + before - 1) / before;
    set_batches(b, "--memory");
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

  // Validation decodes in the place of activations, with a model of its own.
  void plan_decoding(StepRunner& runner, int64_t longest, int64_t room) {
    const ModelConfig& config = network_->config();
    const int64_t scores =
        kDecodingSequences * int64_t{config.vocabulary} * static_cast<int64_t>(sizeof(float));
    const auto rows = static_cast<int64_t>(
        runner.evaluation_bytes(shape_batch(config, kDecodingTokens, longest)));
    // Nothing is saved meanwhile, so a copy of the weights that is planned for that is there too.
    const int64_t weights = (kDecodingWeights - kCopiesWhileSaving) * weight_bytes(*network_);
    const int64_t left = room - weights - scores - rows;
    decoding_bytes_ = std::clamp(left, kLeastDecodingBytes, kDecodingBytes);
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
            .settings = resolved_settings(recipe_, &data_.config),
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
  int64_t decoding_bytes_ = kDecodingBytes;  // for keys and values, when validation decodes
  int64_t prepared_peak_bytes_ = 0;
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
