// The scheduler: continuous batching of all requests to one model.
//
// A step
//   1. drops cancelled and expired tasks,
//   2. admits waiting tasks, first come first served, while the KV cache has room,
//   3. runs the encoder on the sources of new tasks and writes their cross-attention K and V,
//   4. packs the next tokens of all running tasks, decode steps and chunks of prompts (prefill),
//      into one batch and runs the decoder once,
//   5. advances the search of each task whose sequences have all been run.
//
// KV cache blocks are allocated as sequences grow. When none is left, the task that came last is
// preempted: it releases its blocks, waits, and is later recomputed from its ids, with the same
// bits. The task that came first therefore always makes progress, and nothing can deadlock.
//
// Not thread-safe: it belongs to the engine's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/thread_pool.h"
#include "heed/engine.h"
#include "infer/engine/decode_batch.h"
#include "infer/search/text_search.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {

// A request, as the scheduler sees it.
class Task {
 public:
  virtual ~Task() = default;

  std::vector<int32_t> source;  // of encoder-decoder models
  std::unique_ptr<TextSearch> search;
  std::optional<std::chrono::steady_clock::time_point> deadline;

  // Called by the scheduler. An exception fails the task.
  virtual bool is_cancelled() const = 0;
  virtual void on_step() = 0;    // the search has advanced
  virtual void on_finish() = 0;  // after the last step: take the answers
  virtual void on_error(std::exception_ptr error) noexcept = 0;
};

struct SchedulerStatistics {
  int64_t waiting = 0, running = 0, ticks = 0, rows = 0, source_rows = 0, preemptions = 0;
};

class Scheduler {
 public:
  // Borrows the network.
  Scheduler(const Network& network, const EngineOptions& options);

  // KV blocks of a task that runs alone. More than kv_blocks(): it can never run.
  int64_t blocks_needed(int64_t source_tokens, int64_t prompt_tokens, const SearchPlan& plan) const;
  int64_t kv_blocks() const { return cache_.blocks(); }
  int64_t kv_block_bytes() const { return static_cast<int64_t>(cache_.block_bytes()); }
  int64_t kv_blocks_used() const { return cache_.used_blocks(); }

  void add(std::unique_ptr<Task> task);
  // One step; does nothing without tasks.
  void step();
  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  // Fails the running tasks, or all.
  void fail_running(const std::exception_ptr& error);
  void fail_all(const std::exception_ptr& error);

  SchedulerStatistics statistics() const;

  // Calls work(ctx) with a measuring context, then on the scheduler's threads and arena. Between
  // steps only.
  void run(const std::function<void(Ctx& ctx)>& work);

 private:
  void drop_lapsed();
  void admit();
  bool has_room(const Task& task) const;
  bool start(Task& task);
  void encode_sources();
  void build_batch();
  bool make_room(size_t index);
  void preempt_last();
  void add_rows(Task& task);
  void run_decoder();
  void take_steps();
  void release(Task& task);
  template <class Run>
  size_t bytes_for(const Run& run);
  template <class Run>
  size_t bytes_for_decoder(const Run& run);
  template <class Run>
  void with_memory(size_t bytes, const Run& run);

  const Network& network_;
  const EngineOptions options_;
  const bool has_source_;
  ThreadPool pool_;
  Arena arena_;
  // Arena bytes of a decode step by (rows, output rows), measured once.
  std::map<std::pair<int64_t, size_t>, size_t> decoder_bytes_;
  KvCache cache_;
  DecodeBatch batch_;

  std::deque<std::unique_ptr<Task>> waiting_;
  std::vector<std::unique_ptr<Task>> running_;  // first come first
  std::vector<Task*> starting_;                 // whose source is not encoded yet
  int64_t running_sequences_ = 0;               // sum of the running tasks' widths
  // After a preemption, admit nothing until a running task finishes; otherwise two tasks could
  // preempt each other forever.
  bool has_preempted_ = false;

  // Of one step: the rows of the batch whose logits are needed, and their sequences.
  struct OutputRow {
    Task* task;
    size_t sequence;
  };
  std::vector<int32_t> output_rows_;
  std::vector<OutputRow> outputs_;
  std::vector<Task*> stepping_;

  std::mutex scratch_mutex_;
  std::vector<std::unique_ptr<SearchScratch>> free_scratch_;  // not in use by a thread
  SchedulerStatistics statistics_;
};

}  // namespace heed
