// The forward pass of a batch up to its losses: one list of tasks, for training and for evaluation.
//
// The batch's labels decide which losses there are:
//
//   scores            regression         squared error of each sequence
//   sequence_labels   classification     cross-entropy of each sequence
//   labels            tagging            cross-entropy of each row, from the classifier head
//   labels            token prediction   cross-entropy of each row, from the vocabulary; with a
//                                        teacher also its soft targets and hidden states, with
//                                        R-Drop also the divergence of two passes
//   next_sentence     beside the labels of masked_lm
#pragma once

#include <optional>
#include <vector>

#include "data/batches/batch.h"
#include "model/network.h"
#include "ops/ctx.h"
#include "train/run/loss.h"

namespace heed {

class TaskLoss {
 public:
  struct Options {
    const Network& network;
    const Network* teacher = nullptr;  // its weights are not trained
    LossOptions loss{};
  };
  // Throws invalid_argument where teacher and student, or R-Drop and the model, do not fit.
  explicit TaskLoss(const Options& options);

  // Records the losses on ctx.tape. `counts` are the denominators of the whole step. The batch must
  // live until backward has run, and no other train() may come before that.
  StepLoss train(Ctx& ctx, const TrainingBatch& batch, const LabelCounts& counts);
  Evaluation evaluate(Ctx& ctx, const TrainingBatch& batch) const;

  // Whether only rows with a label are multiplied by the output matrix: worth a copy of the rows
  // where few have one (masked language models).
  bool selects_rows(const TrainingBatch& batch) const;

 private:
  // A batch as the model takes it.
  struct View {
    Batch input, target;
    const Batch& predicted() const { return target.sequences() > 0 ? target : input; }
  };
  // The output of a classifier or regression head, and its loss.
  struct HeadLoss {
    Var output;
    LossPart part;
  };

  void check_teacher() const;
  void check_r_drop() const;
  View view(const TrainingBatch& batch) const;
  Var hidden(Ctx& ctx, const Network& network, const View& view) const;
  // The task list. Nothing for token prediction. Without counts: evaluation.
  std::optional<HeadLoss> head_loss(Ctx& ctx, const Var& rows, const TrainingBatch& batch,
                                    const View& view, const LabelCounts* counts) const;
  std::optional<LossPart> next_sentence_loss(Ctx& ctx, const Var& rows, const TrainingBatch& batch,
                                             const View& view, const LabelCounts* counts) const;
  StepLoss token_losses(Ctx& ctx, Var hidden, const TrainingBatch& batch,
                        const LabelCounts& counts);
  StepLoss distillation_losses(Ctx& ctx, const Var& hidden, const TrainingBatch& batch,
                               const LabelCounts& counts) const;
  Evaluation evaluate_tokens(Ctx& ctx, const Var& hidden, const TrainingBatch& batch) const;

  Options o_;
  // Of the batch that trains; backward reads them.
  std::optional<View> view_;
  std::vector<int32_t> labelled_rows_, labels_;
};

}  // namespace heed
