#include "train/run/step_plan.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/files/atomic_file.h"
#include "base/process_memory.h"
#include "base/text/number_text.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/run/checkpoint.h"

namespace heed {
namespace {

// The KV cache of validation gets what a limit leaves, but at least enough for one sentence.
constexpr int64_t kLeastDecodingBytes = 16 << 20;
// Beside the KV cache, decoding needs the weights as in the file and as packed for inference, and
// the activations and logits of a batch (EngineOptions::batch_tokens, max_sequences).
constexpr int64_t kDecodingWeights = 2, kDecodingTokens = 1024, kDecodingSequences = 256;

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

}  // namespace

StepBatches batches_of(const Recipe& recipe) {
  return {recipe.data.batch_tokens, recipe.data.batch_sentences, recipe.train.accumulate};
}

void set_batches(Recipe& recipe, const StepBatches& b, const char* origin) {
  recipe.data.batch_tokens = b.batch_tokens;
  recipe.data.batch_sentences = b.batch_sentences;
  recipe.train.accumulate = static_cast<int>(b.accumulate);
  for (const char* key : {"data.batch_tokens", "data.batch_sentences", "train.accumulate"}) {
    recipe.origins[key] = origin;
  }
}

StepBatches divide_step(const StepBatches& whole, int64_t least_parts, int ranks) {
  const int64_t parts = (least_parts + ranks - 1) / ranks * ranks;
  if (parts > kMostBatches) {
    throw Error(ErrorCode::out_of_memory,
                "a step must have at most " + std::to_string(kMostBatches) + " batches, one of " +
                    std::to_string(whole.batch_tokens * whole.accumulate) + " tokens would have " +
                    std::to_string(parts),
                "allow more --memory, or lower data.batch_tokens or train.accumulate");
  }
  const auto smaller = [&](int64_t size) {
    return std::max<int64_t>(1, (size * whole.accumulate + parts - 1) / parts);
  };
  return {.batch_tokens = smaller(whole.batch_tokens),
          .batch_sentences = whole.batch_sentences > 0 ? smaller(whole.batch_sentences) : 0,
          .accumulate = parts};
}

StepPlanner::StepPlanner(const Options& options, TrainingBatch largest)
    : o_(options),
      largest_(std::move(largest)),
      runner_({.network = o_.network,
               .pool = o_.pool,
               .teacher = o_.teacher,
               .loss = o_.recipe.objective.loss}) {
  const int64_t teacher_bytes = o_.teacher ? weight_bytes(*o_.teacher) : 0;
  // Allocated already, and part of the plan: values and full gradients.
  const GradientMemory memory = o_.network.parameters().gradient_memory();
  const bool full = memory == GradientMemory::full;
  const int64_t counted = (full ? 2 : 1) * weight_bytes(o_.network) + teacher_bytes;
  // With a limit on sentences, batches may have far fewer tokens than batch_tokens.
  const bool counts_sentences = o_.recipe.data.batch_sentences > 0;
  const int64_t batch_tokens = o_.recipe.data.batch_tokens;
  limits_ = {
      .limit_bytes = o_.limit_bytes,
      .requested_tokens = counts_sentences ? std::min(largest_.rows(), batch_tokens) : batch_tokens,
      .longest = longest_sequence(largest_),
      .largest = &largest_,
      .teacher_bytes = teacher_bytes,
      .process_bytes = std::max<int64_t>(current_rss_bytes() - counted, 0),
      .threads = o_.pool.threads(),
      .bytes_per_weight = bytes_per_weight(o_.recipe.optimizer, memory),
      .recompute = o_.recipe.train.recompute};
  choice_ = {.memory_bytes = o_.limit_bytes, .requested = batches_of(o_.recipe)};
}

void StepPlanner::write_choice() const {
  const Json json{{"memory_bytes", choice_.memory_bytes},
                  {"wanted", to_json(choice_.requested)},  // the key of earlier versions
                  {"chosen", to_json(choice_.chosen)},
                  {"recompute", choice_.recompute},
                  {"planned_bytes", choice_.planned_bytes}};
  AtomicFile file(memory_file());
  file.write(json.dump(2) + "\n");
  file.commit();
}

// Nothing if there is none or it is not readable: then the batches are chosen again.
std::optional<StepPlanner::Choice> StepPlanner::read_choice() const {
  std::ifstream file(memory_file());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    Choice c{.memory_bytes = whole_at(json, "memory_bytes"),
             .requested = batches_from(json.at("wanted")),
             .chosen = batches_from(json.at("chosen")),
             .recompute = json.at("recompute").get<bool>(),
             .planned_bytes = json.contains("planned_bytes") ? whole_at(json, "planned_bytes") : 0};
    const bool valid = c.chosen.batch_tokens > 0 && c.chosen.batch_sentences >= 0 &&
                       c.chosen.accumulate > 0 && c.chosen.accumulate <= kMostBatches;
    return valid ? std::optional(c) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Takes what an earlier run of this training chose, if it has a checkpoint and the same request.
bool StepPlanner::take_earlier_choice() {
  if (Checkpoints(o_.recipe.train.out + "/checkpoints").list().empty()) return false;
  const std::optional<Choice> earlier = read_choice();
  if (!earlier || earlier->requested != choice_.requested ||
      earlier->chosen.accumulate % o_.ranks.size() != 0) {
    return false;
  }
  choice_ = *earlier;
  return true;
}

void StepPlanner::set_gradients(GradientMemory memory) {
  if (memory == o_.network.parameters().gradient_memory()) return;
  o_.network.add_gradients(memory);
  limits_.bytes_per_weight = bytes_per_weight(o_.recipe.optimizer, memory);
}

// A step of several batches needs full gradients, which leaves less for the batches. So one batch
// with pooled gradients is tried first, then several with full ones; layers are recomputed only if
// nothing else fits.
MemoryPlan StepPlanner::plan_step() {
  if (o_.network.parameters().gradient_memory() == GradientMemory::full) {
    return plan_memory(runner_, o_.network, limits_);
  }
  const bool automatic = limits_.recompute == Recompute::automatic;
  const auto plan_with = [&](GradientMemory memory, Recompute recompute) {
    set_gradients(memory);
    MemoryPlanOptions options = limits_;
    options.recompute = recompute;
    return plan_if_it_fits(runner_, o_.network, options);
  };
  const auto is_whole = [&](const std::optional<MemoryPlan>& plan) {
    return plan && plan->batch_tokens >= limits_.requested_tokens;
  };
  std::optional<MemoryPlan> pooled =
      plan_with(GradientMemory::pooled, automatic ? Recompute::off : limits_.recompute);
  if (is_whole(pooled)) return *pooled;
  const std::optional<MemoryPlan> full = plan_with(GradientMemory::full, limits_.recompute);
  if (full && !(automatic && full->recompute)) return *full;
  if (automatic) pooled = plan_with(GradientMemory::pooled, Recompute::on);
  if (is_whole(pooled)) return *pooled;
  set_gradients(GradientMemory::full);
  if (full) return *full;
  try {
    return plan_memory(runner_, o_.network, limits_);  // throws, with the figures
  } catch (const Error& error) {
    if (!pooled) throw;
    throw Error(error.code(), error.what(),
                "allow more --memory, or take smaller steps: one batch of data.batch_tokens = " +
                    std::to_string(pooled->batch_tokens) + " needs no full gradients, and fits");
  }
}

StepBatches StepPlanner::choose() {
  is_new_ = o_.ranks.first() && !take_earlier_choice();
  if (is_new_) {
    const MemoryPlan plan = plan_step();
    choice_.recompute = plan.recompute;
    choice_.chosen = choice_.requested;
    if (plan.batch_tokens < limits_.requested_tokens) {
      StepBatches whole = choice_.requested;
      whole.batch_tokens = limits_.requested_tokens;
      const int64_t tokens = whole.batch_tokens * whole.accumulate;
      choice_.chosen =
          divide_step(whole, (tokens + plan.batch_tokens - 1) / plan.batch_tokens, o_.ranks.size());
    }
  }
  share_choice();
  if (o_.recipe.train.recompute != Recompute::automatic) {
    choice_.recompute = o_.recipe.train.recompute == Recompute::on;
  }
  return choice_.chosen;
}

// All ranks use the first rank's choice.
void StepPlanner::share_choice() {
  for (int64_t* number :
       {&choice_.memory_bytes, &choice_.planned_bytes, &choice_.chosen.batch_tokens,
        &choice_.chosen.batch_sentences, &choice_.chosen.accumulate}) {
    *number = o_.ranks.broadcast(*number);
  }
  choice_.recompute = o_.ranks.broadcast(int64_t{choice_.recompute}) != 0;
}

StepPlan StepPlanner::finish(const TrainingBatch& largest) {
  o_.network.set_activation_checkpointing(choice_.recompute);
  set_gradients(gradient_memory(o_.recipe.optimizer, static_cast<int>(choice_.chosen.accumulate)));
  const auto activations = static_cast<int64_t>(runner_.training_bytes(largest));
  const int64_t room = room_for_activations(o_.network.config(), limits_);
  // Without the process' other memory: that varies, and is no reason to refuse a resumed training.
  const int64_t planned = o_.limit_bytes - room - limits_.process_bytes + activations;
  if (activations > room) check_resumed(planned, activations, room);
  if (is_new_) {
    choice_.planned_bytes = planned;
    write_choice();
  }
  return {.recompute = choice_.recompute,
          .fixed_bytes = o_.limit_bytes - room,
          .activation_bytes = activations,
          .decoding_bytes = decoding_bytes(room)};
}

// A resumed training may have a smaller limit, or a loss or optimizer state that needs more.
void StepPlanner::check_resumed(int64_t planned, int64_t activations, int64_t room) const {
  const bool is_less = o_.limit_bytes < choice_.memory_bytes;
  const bool needs_more = choice_.planned_bytes > 0 && planned > choice_.planned_bytes;
  if (!is_less && !needs_more) return;
  throw Error(
      ErrorCode::out_of_memory,
      "this training began with " +
          (is_less ? "--memory " + megabytes(choice_.memory_bytes)
                   : "a plan of " + megabytes(choice_.planned_bytes) +
                         ", with the changed settings it is " + megabytes(planned)) +
          "; its batches of " + std::to_string(choice_.chosen.batch_tokens) + " tokens need " +
          megabytes(activations) + ", " + megabytes(o_.limit_bytes) + " leave " +
          megabytes(std::max<int64_t>(room, 0)),
      (is_less ? "give as much --memory as before, or remove " : "give more --memory, or remove ") +
          memory_file() + " to continue with other batches, which is another training");
}

// Validation decodes with a second copy of the model, in the memory of the activations.
int64_t StepPlanner::decoding_bytes(int64_t room) {
  const ModelConfig& config = o_.network.config();
  const int64_t logits =
      kDecodingSequences * int64_t{config.vocabulary} * static_cast<int64_t>(sizeof(float));
  const auto activations = static_cast<int64_t>(
      runner_.evaluation_bytes(shape_batch(config, kDecodingTokens, limits_.longest)));
  // Nothing is saved meanwhile, so the copy of the weights that saving makes is free too.
  const int64_t weights = (kDecodingWeights - kCopiesWhileSaving) * weight_bytes(o_.network);
  return std::clamp(room - weights - logits - activations, kLeastDecodingBytes, kDecodingBytes);
}

}  // namespace heed
