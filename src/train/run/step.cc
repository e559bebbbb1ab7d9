#include "train/run/step.h"

#include <algorithm>

#include "base/clock.h"
#include "heed/error.h"
#include "ops/gradient_pool.h"
#include "train/ranks/gradient_exchange.h"

namespace heed {
namespace {

// Each batch of a step has its own dropout streams; no forward pass has this many.
constexpr uint32_t kSitesPerPart = 1 << 20;

// Arenas grow by more than is needed, so that slowly growing batches do not map new memory at every
// step. Untouched pages cost nothing.
constexpr double kGrowth = 1.25;

// Plans that are kept. With random sequence lengths most shapes occur once; a plan of a large model
// has some kilobytes.
constexpr size_t kMostPlans = 512;

void append(std::vector<int32_t>& list, const std::vector<int32_t>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

StepShape::Rows shape_of(const Rows& rows) {
  StepShape::Rows shape{.rows = rows.rows(),
                        .has_positions = !rows.positions.empty(),
                        .has_token_types = !rows.token_types.empty()};
  for (size_t s = 1; s < rows.offsets.size(); ++s) {
    ++shape.sequences;
    shape.longest = std::max<int64_t>(shape.longest, rows.offsets[s] - rows.offsets[s - 1]);
  }
  return shape;
}

}  // namespace

StepRunner::StepRunner(const Options& options)
    : o_(options), task_loss_({.network = o_.network, .teacher = o_.teacher, .loss = o_.loss}) {}

// With R-Drop, all sequences of the batch and then all of them a second time.
const TrainingBatch& StepRunner::repeated(const TrainingBatch& batch) {
  if (o_.loss.r_drop == 0) return batch;
  repeated_ = batch;
  for (auto [rows, once] :
       {std::pair{&repeated_.input, &batch.input}, {&repeated_.target, &batch.target}}) {
    append(rows->tokens, once->tokens);
    append(rows->positions, once->positions);
    append(rows->token_types, once->token_types);
    for (size_t s = 1; s < once->offsets.size(); ++s) {
      rows->offsets.push_back(once->offsets.back() + once->offsets[s]);
    }
  }
  append(repeated_.labels, batch.labels);
  append(repeated_.next_sentence, batch.next_sentence);
  return repeated_;
}

GradientPlan StepRunner::measure_repeated(const TrainingBatch& batch) {
  const LabelCounts counts = count_labels(batch);
  return plan_gradients(o_.network.parameters(), o_.pool, tape_,
                        [&](Ctx& ctx, const std::function<void()>& after_each) {
                          task_loss_.train(ctx, batch, counts);
                          tape_.backward(ctx, after_each);
                        });
}

StepShape StepRunner::shape_of(const TrainingBatch& batch) const {
  return {.input = heed::shape_of(batch.input),
          .target = heed::shape_of(batch.target),
          .selected_rows = task_loss_.selects_rows(batch) ? count_labels(batch.labels) : -1,
          .has_scores = !batch.scores.empty(),
          .has_classes = !batch.sequence_labels.empty(),
          .has_next_sentence = !batch.next_sentence.empty(),
          .activation_checkpointing = o_.network.activation_checkpointing(),
          .gradients = o_.network.parameters().gradient_memory()};
}

const GradientPlan& StepRunner::plan_repeated(const TrainingBatch& batch) {
  const StepShape shape = shape_of(batch);
  const auto found = plans_.find(shape);
  if (found != plans_.end()) return found->second;
  GradientPlan plan = measure_repeated(batch);
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.emplace(shape, std::move(plan)).first->second;
}

GradientPlan StepRunner::measure(const TrainingBatch& batch) {
  return measure_repeated(repeated(batch));
}

const GradientPlan& StepRunner::plan(const TrainingBatch& batch) {
  return plan_repeated(repeated(batch));
}

void StepRunner::release_memory() {
  arena_ = Arena(0);
  if (GradientPool* pool = o_.network.parameters().gradient_pool()) pool->free_memory();
}

void StepRunner::reserve(size_t bytes) {
  if (bytes <= arena_.capacity_bytes()) return;
  arena_ = Arena(0);  // free the old one first
  arena_ = Arena(static_cast<size_t>(kGrowth * static_cast<double>(bytes)));
}

StepLoss StepRunner::train(GradientStep& step, const TrainingBatch& once,
                           const LabelCounts& counts_once, const Place& place,
                           const GradientOutlet& outlet) {
  HEED_CHECK(place.part >= 0 && place.part < kMostBatches, "a step must have at most 4096 batches");
  const bool pooled = o_.network.parameters().gradient_memory() == GradientMemory::pooled;
  HEED_CHECK(!pooled || !outlet.exchange, "an exchange must have full gradients");
  HEED_CHECK(pooled || !outlet.use, "a fused update must have pooled gradients");
  const TrainingBatch& batch = repeated(once);
  LabelCounts counts = counts_once;
  if (&batch != &once) counts += counts_once;
  const GradientPlan& plan = plan_repeated(batch);
  reserve(plan.activation_bytes);
  BackwardPass pass(step, plan);
  std::function<void()> after_each;
  if (outlet.exchange) {
    outlet.exchange->begin();
    after_each = [&] { outlet.exchange->advance(); };
  } else if (pooled) {
    after_each = [&] { pass.use_final(outlet.use); };
  }
  Ctx ctx{o_.pool,
          arena_,
          &tape_,
          place.seed,
          static_cast<uint32_t>(place.step),
          static_cast<uint32_t>(place.part) * kSitesPerPart};
  const Arena::Mark mark = arena_.mark();
  StepLoss loss;
  try {
    const Clock::time_point start = Clock::now();
    loss = task_loss_.train(ctx, batch, counts);
    times_.forward_seconds = seconds_since(start);
    tape_.backward(ctx, after_each);
    if (pooled) pass.use_final(outlet.use);
    times_.backward_seconds = seconds_since(start) - times_.forward_seconds;
  } catch (...) {
    tape_.clear();
    arena_.rewind(mark);
    throw;
  }
  arena_.rewind(mark);
  return loss;
}

size_t StepRunner::evaluation_bytes(const TrainingBatch& batch) {
  Arena arena = Arena::measuring();
  Ctx ctx{o_.pool, arena};
  task_loss_.evaluate(ctx, batch);
  return arena.peak_bytes();
}

Evaluation StepRunner::evaluate(const TrainingBatch& batch) {
  reserve(evaluation_bytes(batch));
  Ctx ctx{o_.pool, arena_};
  const Arena::Mark mark = arena_.mark();
  try {
    Evaluation result = task_loss_.evaluate(ctx, batch);
    arena_.rewind(mark);
    return result;
  } catch (...) {
    arena_.rewind(mark);
    throw;
  }
}

}  // namespace heed
