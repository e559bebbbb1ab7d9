// One step's mathematics: a batch in, its loss and the gradients out; for every objective.
//
//   StepRunner runner({.network = network, .pool = pool});
//   const LabelCounts counts = count_labels(batch);
//   network.parameters().begin_step();
//   StepLoss loss = runner.train(batch, counts, {.seed = 1, .step = step});
//   network.parameters().finish_gradients();     // then Optimizer::update()
//
// Where gradients are lent (GradientMemory), each is used while backward goes on:
//
//   optimizer.begin_update(pool, rate);
//   const auto update = [&](size_t weight) { optimizer.update_weight(pool, weight); };
//   StepLoss loss = runner.train(batch, counts, {.seed = 1, .step = step}, {.use = update});
//   optimizer.finish_update(pool);
//
// What a batch holds decides which losses there are: a label for each row, a class, a number or a
// next-sentence answer for each sequence, with a teacher its soft targets, and with R-Drop how far
// two passes are apart. Each is a mean over what was asked, so a step of several batches must know
// their counts together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "data/batches/batch.h"
#include "model/network.h"

namespace heed {

class GradientExchange;

struct LossOptions {
  float label_smoothing = 0;
  // Wu et al. 2021 (R-Drop), their α: every sequence is read twice, each time with dropout of its
  // own, and the loss is (cross-entropy of both + α · how far the answers are apart) / 2.
  float r_drop = 0;
  // With a teacher (Sanh et al. 2019, DistilBERT): the weights of the losses, and how soft its
  // answers are made.
  float temperature = 2;
  float soft_weight = 5;    // divergence from the teacher's answers
  float label_weight = 2;   // the task's own labels
  float cosine_weight = 1;  // direction of the hidden states

  bool operator==(const LossOptions&) const = default;
};

// Whether a model reads a text another way each time it trains on it, which R-Drop lives on.
bool has_dropout(const ModelConfig& config);

// What the means are taken over.
struct LabelCounts {
  int64_t labels = 0;     // rows with a label
  int64_t sequences = 0;  // sequences with a class, a score or a next-sentence answer
  int64_t rows = 0;       // rows that are predicted from, labelled or not

  LabelCounts& operator+=(const LabelCounts& other);
};
LabelCounts count_labels(const TrainingBatch& batch);

enum class LossKind { labels, classes, scores, next_sentence, soft_targets, cosine, twins };
inline constexpr size_t kLossKinds = 7;
std::string_view name(LossKind kind);

struct LossPart {
  LossKind kind = LossKind::labels;
  double weight = 1;
  double sum = 0;
  int64_t count = 0;

  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

// The sums of a batch, or of several.
struct StepLoss {
  std::vector<LossPart> parts;

  double loss() const;  // the weighted sum of the parts' means
  StepLoss& operator+=(const StepLoss& other);
};

// What a model gets right, judged without any search: each answer given those before it.
struct Evaluation {
  StepLoss loss;
  int64_t correct = 0, judged = 0;
  // Regression: sums of the predictions x, the truth y, and their products.
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  Evaluation& operator+=(const Evaluation& other);
  std::optional<double> accuracy() const;
  std::optional<double> pearson() const;
};

// Most batches of one step: dropout's random numbers have room for no more.
inline constexpr int kMostBatches = 1 << 12;

struct StepTimes {
  double forward_seconds = 0;   // the losses included
  double backward_seconds = 0;  // with what used lent gradients
};

// Who gets gradients while backward goes on, as soon as they are final.
struct GradientOutlet {
  // Kept ones go out to the other ranks. It begins here; finish it before they are read.
  GradientExchange* exchange = nullptr;
  // Lent ones are given to whoever uses them, by the number of their weight, and are gone then.
  std::function<void(size_t weight)> use{};
};

class StepRunner {
 public:
  struct Options {
    Network& network;  // with gradients, when it trains
    ThreadPool& pool;
    const Network* teacher = nullptr;  // its weights stay as they are
    LossOptions loss{};
  };
  // Throws invalid_argument when teacher and student do not fit together, or R-Drop and the model.
  explicit StepRunner(const Options& options);

  // Where random numbers (dropout) come from: never from what ran before.
  struct Place {
    uint64_t seed = 0;
    int64_t step = 0;
    int part = 0;  // of the batches whose gradients make one step
  };

  // Adds to the gradients. `counts` are those of the whole step. Lent gradients that nobody uses
  // are forgotten.
  StepLoss train(const TrainingBatch& batch, const LabelCounts& counts, const Place& place,
                 const GradientOutlet& outlet = {});
  Evaluation evaluate(const TrainingBatch& batch);

  // Bytes of activations, and of gradients that are lent, that the two need, without running
  // anything.
  size_t training_bytes(const TrainingBatch& batch);
  size_t evaluation_bytes(const TrainingBatch& batch);

  // Gives the memory of activations and lent gradients back until the next batch.
  void release_memory();
  size_t arena_bytes() const { return arena_.capacity_bytes(); }
  const StepTimes& times() const { return times_; }  // of the last train()

 private:
  // A batch as the model's text reads it.
  struct View {
    Batch input, target;
    const Batch& predicted() const { return target.sequences() > 0 ? target : input; }
  };

  void check_teacher() const;
  void check_twins() const;
  const TrainingBatch& as_read(const TrainingBatch& batch);
  size_t planned_bytes(const TrainingBatch& batch, const LabelCounts& counts);
  size_t measure(const TrainingBatch& batch, const LabelCounts& counts,
                 const std::function<void()>& after_each);
  View view(const TrainingBatch& batch) const;
  Var hidden(Ctx& ctx, const Network& network, const View& view) const;
  StepLoss forward(Ctx& ctx, const TrainingBatch& batch, const View& view,
                   const LabelCounts& counts);
  StepLoss row_losses(Ctx& ctx, Var hidden, const TrainingBatch& batch, const View& view,
                      const LabelCounts& counts);
  Evaluation judge(Ctx& ctx, const TrainingBatch& batch, const View& view);
  Evaluation judge_rows(Ctx& ctx, Var hidden, std::span<const int32_t> labels);
  void reserve(size_t bytes);

  Options o_;
  Arena arena_{0};
  Tape tape_;
  std::vector<int32_t> labelled_rows_, labels_;  // of the current batch; backward reads them
  TrainingBatch twins_;                          // likewise, with r_drop
  StepTimes times_;
};

}  // namespace heed
