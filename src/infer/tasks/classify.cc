// Classification and regression.
#include <algorithm>

#include "infer/tasks/softmax.h"
#include "infer/tasks/task_runner.h"

namespace heed {
Classifier::Classifier(Model model, const TaskOptions& options)
    : runner_(std::make_shared<TaskRunner>(std::move(model), options)) {
  need_head(runner_->model(), {{Head::classifier, Head::regression}}, "classifying texts");
}

bool Classifier::is_regression() const { return runner_->config().head == Head::regression; }

const std::vector<std::string>& Classifier::labels() const { return runner_->model().labels(); }

std::vector<Classified> Classifier::classify(const std::vector<TaskInput>& inputs,
                                             const std::function<bool()>& is_cancelled) const {
  const std::vector<ReadInput> read = runner_->read(inputs, runner_->max_tokens());
  std::vector<Classified> results(inputs.size());
  std::vector<TaskSequence> sequences;
  for (size_t i = 0; i < inputs.size(); ++i) {
    results[i].tokens = std::ssize(read[i].encoding.ids);
    results[i].truncated = read[i].truncated;
    sequences.push_back(runner_->sequence(read[i].encoding));
  }
  runner_->run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    const Batch rows = batch.source.batch();
    const Var logits = runner_->transformer().classify(ctx, runner_->hidden(ctx, batch), rows);
    if (ctx.measuring()) return;
    for (size_t s = 0; s < batch.members.size(); ++s) {
      Classified& result = results[batch.members[s]];
      const float* row = logits.value.row(static_cast<int64_t>(s));
      result.logits.assign(row, row + logits.cols());
      if (is_regression()) continue;
      result.probabilities = softmax(result.logits);
      result.label =
          static_cast<int>(std::ranges::max_element(result.logits) - result.logits.begin());
      result.name = labels()[static_cast<size_t>(result.label)];
    }
  });
  return results;
}

}  // namespace heed
