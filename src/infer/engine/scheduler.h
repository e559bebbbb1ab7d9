// The scheduler: continuous batching of everything that is asked of one model.
//
// At each tick it
//   1. drops what was cancelled or is past its deadline,
//   2. admits waiting tasks, first come first served, while there is room,
//   3. runs the encoder on the sources that came in, and puts their keys into the cache,
//   4. packs the next tokens of all running tasks, single steps and pieces of prompts, into one
//      batch and runs the decoder once,
//   5. lets the search of each task whose texts have all been run take its step.
//
// Memory for keys is given as texts grow. When there is none left, the task that came last gives
// back all of its own and waits; it is later run anew from the texts it had, which gives the same
// bits. The task that came first therefore always gets on, and nothing can deadlock.
//
// Not thread-safe: it belongs to the engine's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
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

// One request inside.
class Task {
 public:
  virtual ~Task() = default;

  std::vector<int32_t> source;  // of encoder-decoder models
  std::unique_ptr<TextSearch> search;
  std::optional<std::chrono::steady_clock::time_point> deadline;

  // What the scheduler asks and tells. Exceptions from them fail the task.
  virtual bool is_cancelled() const = 0;
  virtual void on_step() = 0;    // the search has taken a step
  virtual void on_finish() = 0;  // and this was the last: take its answers
  virtual void on_error(std::exception_ptr error) noexcept = 0;
};

struct SchedulerStatistics {
  int64_t waiting = 0, running = 0, ticks = 0, rows = 0, source_rows = 0, preemptions = 0;
};

class Scheduler {
 public:
  // Borrows the network.
  Scheduler(const Network& network, const EngineOptions& options);

  // Blocks that a task needs when it runs alone. More than kv_blocks(): it can never run.
  int64_t blocks_needed(int64_t source_tokens, int64_t prompt_tokens, const SearchPlan& plan) const;
  int64_t kv_blocks() const { return cache_.blocks(); }
  int64_t kv_blocks_used() const { return cache_.used_blocks(); }

  void add(std::unique_ptr<Task> task);
  // One tick; does nothing when there is nothing to do.
  void tick();
  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  // Fails what runs, or everything.
  void fail_running(const std::exception_ptr& error);
  void fail_all(const std::exception_ptr& error);

  SchedulerStatistics statistics() const;

  // Where each of the last `rows` tokens of `target` looked in the source, by the heads' average in
  // the layer that aligns best.  → [rows, source]
  std::vector<std::vector<float>> attention(std::span<const int32_t> source,
                                            std::span<const int32_t> target, size_t rows);

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
  // What steps of the decoder need, by (rows, rows with logits): measured once.
  std::map<std::pair<int64_t, size_t>, size_t> decoder_bytes_;
  KvCache cache_;
  DecodeBatch batch_;

  std::deque<std::unique_ptr<Task>> waiting_;
  std::vector<std::unique_ptr<Task>> running_;  // first come first
  std::vector<Task*> starting_;                 // of these the source is to be encoded
  int64_t running_texts_ = 0;                   // widths of what runs
  // Somebody had to make room: nobody comes in before somebody has left, or they would take turns.
  bool is_crowded_ = false;

  // Of one tick: rows of the batch whose logits are wanted, and whose they are.
  struct Wanted {
    Task* task;
    size_t text;
  };
  std::vector<int32_t> wanted_rows_;
  std::vector<Wanted> wanted_;
  std::vector<Task*> stepping_;

  std::mutex choosers_mutex_;
  std::vector<std::unique_ptr<Chooser>> choosers_;  // that no thread uses at the moment
  SchedulerStatistics statistics_;
};

}  // namespace heed
