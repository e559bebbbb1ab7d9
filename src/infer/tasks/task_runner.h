// What the tasks of include/heed/tasks.h share: texts become sequences of a length that the model
// reads, sequences become batches, and batches run in memory that was planned.
//
//   TaskRunner runner(model, options);
//   runner.run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
//     const Var hidden = runner.hidden(ctx, batch);
//     if (ctx.measuring()) return;             // called twice: to plan, then to run
//     … batch.members[s] is the number of the s-th sequence …
//   });
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/cancellation.h"
#include "base/thread_pool.h"
#include "heed/tasks.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {

// One row of a batch to be: for encoder-decoder models a source and, unless only that is asked for,
// a target.
struct TaskSequence {
  std::vector<int32_t> ids, types{}, target{};

  size_t tokens() const { return ids.size() + target.size(); }
};

struct TaskBatch {
  std::vector<size_t> members;  // numbers of the sequences
  PackedBatch source, target;
};

// An input as the model will read it.
struct ReadInput {
  std::string text{};  // the first text
  Encoding encoding{};
  bool truncated = false;
};

class TaskRunner {
 public:
  TaskRunner(Model model, const TaskOptions& options);

  const Model& model() const { return model_; }
  const ModelConfig& config() const { return model_.network().config(); }
  const Transformer& transformer() const { return model_.network().transformer(); }
  ThreadPool& pool() const { return pool_; }

  // The most tokens of a sequence; never beyond the positions that the model has.
  int64_t max_tokens(int64_t wish = 0) const;

  // Encodes with the model's template, and cuts the texts (never the template) to `max_tokens`,
  // the longer one of a pair first. Raw ids are as they are, and cut at the end.
  ReadInput read(const TaskInput& input, int64_t max_tokens) const;
  // Many, on all threads.
  std::vector<ReadInput> read(const std::vector<TaskInput>& inputs, int64_t max_tokens) const;
  // What run() takes. Token types that the model has no embedding for become 0 (RoBERTa).
  TaskSequence sequence(const Encoding& encoding) const;

  // Calls step for every batch, twice: with a measuring context, then to compute. Sequences without
  // tokens are in none. Longest first, so that the memory of the first batch mostly does for all.
  using Step = std::function<void(Ctx& ctx, const TaskBatch& batch)>;
  // `is_cancelled`, if there is one, is asked before each: then it throws cancelled.
  void run(std::span<const TaskSequence> sequences, const std::function<bool()>& is_cancelled,
           const Step& step);

  // The last layer's rows: of the decoder where the batch has targets, or the model has no encoder.
  Var hidden(Ctx& ctx, const TaskBatch& batch) const;

  // visit(i, logits) for the rows of `hidden` that `rows` lists, in tiles, so that logits of all of
  // them never exist at once. Called on several threads; not at all while measuring. A text is one
  // batch however long it is, so `is_cancelled` is asked before each tile too.
  using VisitLogits = std::function<void(size_t i, std::span<float> logits)>;
  void each_logits(Ctx& ctx, Var hidden, std::span<const int32_t> rows,
                   const std::function<bool()>& is_cancelled, const VisitLogits& visit) const;

 private:
  TaskBatch make_batch(std::span<const TaskSequence> sequences, std::vector<size_t> members) const;

  Model model_;
  TaskOptions options_;
  mutable ThreadPool pool_;
  std::mutex running_;
  std::optional<Arena> arena_;
};

// Throws unsupported unless the model's head is one of these. `task` is "to fill masks" or alike.
void need_head(const Model& model, std::span<const Head> heads, const std::string& task);

// Throws invalid_argument for pairs: what `task` answers is places in one text.
void need_single_texts(const std::vector<TaskInput>& inputs, const std::string& task);

// Cuts an encoding to `max_tokens`, its texts and not its template; whether anything was cut.
bool truncate(Encoding& encoding, int64_t max_tokens);

}  // namespace heed
