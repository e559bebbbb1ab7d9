// Shared by the tasks of include/heed/tasks.h: texts become sequences within the context length,
// sequences become batches, and batches run in an arena that was measured.
//
//   TaskRunner runner(model, options);
//   runner.run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
//     const Var hidden = runner.hidden(ctx, batch);
//     if (ctx.measuring()) return;             // called twice: to measure, then to run
//     … batch.members[s] is the index of the s-th sequence …
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

// One sequence: for encoder-decoder models a source and an optional target.
struct TaskSequence {
  std::vector<int32_t> ids, types{}, target{};

  size_t tokens() const { return ids.size() + target.size(); }
};

struct TaskBatch {
  std::vector<size_t> members;  // indices of the sequences
  PackedBatch source, target;
};

// A tokenized input.
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

  // Maximum length of a sequence: `requested`, within the options and the context length.
  int64_t max_tokens(int64_t requested = 0) const;

  // Tokenizes with the model's template and truncates the texts (never the template) to
  // `max_tokens`, the longer one of a pair first. Raw ids are truncated at the end.
  ReadInput read(const TaskInput& input, int64_t max_tokens) const;
  // Many, in parallel.
  std::vector<ReadInput> read(const std::vector<TaskInput>& inputs, int64_t max_tokens) const;
  // Input of run(). Token types without an embedding become 0 (RoBERTa).
  TaskSequence sequence(const Encoding& encoding) const;

  // Calls step for every batch, twice: with a measuring context, then to compute. Sequences without
  // tokens are skipped. Longest first, so that the arena of the first batch mostly fits all.
  using Step = std::function<void(Ctx& ctx, const TaskBatch& batch)>;
  // Polls `is_cancelled` before each batch; throws cancelled.
  void run(std::span<const TaskSequence> sequences, const std::function<bool()>& is_cancelled,
           const Step& step);

  // The last hidden states: of the decoder if the batch has targets or the model has no encoder.
  Var hidden(Ctx& ctx, const TaskBatch& batch) const;

  // visit(i, logits) for the rows of `hidden` in `rows`, in tiles, so that the logits of all rows
  // never exist at once. Called on several threads; not while measuring. A long text is one batch,
  // so `is_cancelled` is polled before each tile too.
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

// Throws unsupported unless the model's head is one of these. `task` is for the message.
void need_head(const Model& model, std::span<const Head> heads, const std::string& task);

// Throws invalid_argument for pairs: results are spans of one text.
void need_single_texts(const std::vector<TaskInput>& inputs, const std::string& task);

// Truncates the texts of an encoding, not its template; returns whether it was longer.
bool truncate(Encoding& encoding, int64_t max_tokens);

}  // namespace heed
