#include "infer/engine/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "heed/error.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

// Choosing a token passes over the scores several times, so that fewer rows amortise a thread.
int64_t choice_grain(int64_t vocabulary) { return std::max<int64_t>(row_grain(vocabulary) / 4, 1); }

}  // namespace

Scheduler::Scheduler(const Network& network, const EngineOptions& options)
    : network_(network),
      options_(options),
      has_source_(network.config().family == Family::encoder_decoder),
      pool_(options.threads),
      arena_(0),
      cache_(network.transformer().kv_layout(), {.memory_bytes = options.kv_memory_bytes}),
      batch_(cache_) {}

int64_t Scheduler::blocks_needed(int64_t source_tokens, int64_t prompt_tokens,
                                 const SearchPlan& plan) const {
  const int64_t sequences = plan.options.sample ? plan.options.nbest : plan.options.beam;
  const int64_t length = prompt_tokens + plan.max_new_tokens;
  const int64_t rows = std::min(length, options_.batch_tokens);
  const int64_t self = cache_.blocks_at_most(length, rows, 0);
  // One more a group: during copy-on-write a block exists twice.
  const auto groups = static_cast<int64_t>(network_.transformer().kv_layout().groups.size());
  return sequences * (self + groups) + cache_.blocks_at_most(0, 0, source_tokens);
}

void Scheduler::add(std::unique_ptr<Task> task) { waiting_.push_back(std::move(task)); }

SchedulerStatistics Scheduler::statistics() const {
  SchedulerStatistics now = statistics_;
  now.waiting = static_cast<int64_t>(waiting_.size());
  now.running = static_cast<int64_t>(running_.size());
  return now;
}

void Scheduler::step() {
  drop_lapsed();
  admit();
  if (running_.empty()) return;
  encode_sources();
  build_batch();
  run_decoder();
  take_steps();
}

void Scheduler::fail_running(const std::exception_ptr& error) {
  for (std::unique_ptr<Task>& task : running_) {
    release(*task);
    task->on_error(error);
  }
  running_.clear(), starting_.clear();
  running_sequences_ = 0;
}

void Scheduler::fail_all(const std::exception_ptr& error) {
  fail_running(error);
  for (std::unique_ptr<Task>& task : waiting_) task->on_error(error);
  waiting_.clear();
}

// Releases the KV cache of all its sequences.
void Scheduler::release(Task& task) {
  for (Sequence& sequence : task.search->sequences()) {
    if (sequence.kv_sequence >= 0) cache_.release(sequence.kv_sequence);
    sequence.kv_sequence = -1, sequence.cached = 0;
  }
}

void Scheduler::drop_lapsed() {
  Clock::time_point now{};
  const auto lapsed = [&](const std::unique_ptr<Task>& task) {
    const char* why = nullptr;
    if (task->is_cancelled()) {
      why = "the request was cancelled";
    } else if (task->deadline) {
      if (now == Clock::time_point{}) now = Clock::now();
      if (now > *task->deadline) why = "the request's deadline has passed";
    }
    if (!why) return false;
    release(*task);
    task->on_error(std::make_exception_ptr(Error(ErrorCode::cancelled, why)));
    return true;
  };
  std::erase_if(running_, [&](const std::unique_ptr<Task>& task) {
    const int64_t sequences = task->search->width();
    if (!lapsed(task)) return false;
    running_sequences_ -= sequences;
    has_preempted_ = false;
    return true;
  });
  std::erase_if(waiting_, lapsed);
}

// Whether a task can start and leave enough blocks for the next step of the running ones.
bool Scheduler::has_room(const Task& task) const {
  if (running_.empty()) return true;
  if (running_sequences_ + task.search->width() > options_.max_sequences) return false;
  const auto groups = static_cast<int64_t>(network_.transformer().kv_layout().groups.size());
  int64_t needed = cache_.blocks_at_most(0, 0, static_cast<int64_t>(task.source.size()));
  for (const Sequence& sequence : task.search->sequences()) {
    const auto length = static_cast<int64_t>(sequence.ids.size()) + 1;
    needed += cache_.blocks_at_most(length, std::min(length, options_.batch_tokens), 0) + groups;
  }
  return needed + running_sequences_ * groups <= cache_.available_blocks();
}

void Scheduler::admit() {
  int64_t source_rows = 0;
  has_preempted_ = has_preempted_ && !running_.empty();
  while (!waiting_.empty() && !has_preempted_) {
    Task& task = *waiting_.front();
    source_rows += static_cast<int64_t>(task.source.size());
    const bool too_many_rows = source_rows > options_.batch_tokens && !starting_.empty();
    if (too_many_rows || !has_room(task) || !start(task)) return;
    running_sequences_ += task.search->width();
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// Opens the KV cache of its sequences.
bool Scheduler::start(Task& task) {
  std::vector<Sequence>& sequences = task.search->sequences();
  Sequence& first = sequences.front();
  first.kv_sequence = cache_.open();
  if (has_source_) {
    if (!cache_.add_source(first.kv_sequence, static_cast<int64_t>(task.source.size()))) {
      release(task);
      return false;
    }
    starting_.push_back(&task);
  }
  for (Sequence& sequence : sequences) {
    // They share the source; no token has been run yet.
    if (&sequence != &first)
      sequence.kv_sequence = has_source_ ? cache_.fork(first.kv_sequence) : cache_.open();
    sequence.cached = cache_.adopt(sequence.kv_sequence, sequence.ids);
  }
  return true;
}

// Arena bytes of `run`, measured without computing.
template <class Run>
size_t Scheduler::bytes_for(const Run& run) {
  Arena plan = Arena::measuring();
  Ctx measured{pool_, plan};
  run(measured);
  return plan.peak_bytes();
}

// The same for the current batch, cached by shape. With an attention bias or a prefill it depends on
// the lengths of the sequences too, and is measured each time.
template <class Run>
size_t Scheduler::bytes_for_decoder(const Run& run) {
  const bool has_prompts = batch_.rows() > static_cast<int64_t>(batch_.sequences().size());
  if (network_.config().has_relative_bias() || has_prompts) return bytes_for(run);
  constexpr size_t kMostShapes = 4096;
  const std::pair shape{batch_.rows(), output_rows_.size()};
  const auto known = decoder_bytes_.find(shape);
  if (known != decoder_bytes_.end()) return known->second;
  if (decoder_bytes_.size() == kMostShapes) decoder_bytes_.clear();
  return decoder_bytes_[shape] = bytes_for(run);
}

// Runs in an arena of at least `bytes`.
template <class Run>
void Scheduler::with_memory(size_t bytes, const Run& run) {
  arena_.rewind({0});  // after a run that threw
  if (bytes > arena_.capacity_bytes()) arena_ = Arena(bytes + bytes / 4);
  Ctx ctx{pool_, arena_};
  run(ctx);
}

void Scheduler::encode_sources() {
  if (starting_.empty()) return;
  PackedBatch packed;
  std::vector<KvCache::Sequence> sequences;
  for (const Task* task : starting_) {
    for (size_t i = 0; i < task->source.size(); ++i) {
      packed.tokens.push_back(task->source[i]);
      packed.positions.push_back(static_cast<int32_t>(i));
    }
    packed.offsets.push_back(static_cast<int32_t>(packed.tokens.size()));
    sequences.push_back(task->search->sequences().front().kv_sequence);
  }
  packed.token_types.resize(packed.tokens.size());
  starting_.clear();
  statistics_.source_rows += static_cast<int64_t>(packed.tokens.size());
  const Transformer& transformer = network_.transformer();
  std::vector<KvTable> tables;
  const KvView view = cache_.view(sequences, tables);
  const auto run = [&](Ctx& ctx) { transformer.cache_source(ctx, packed.batch(), view); };
  with_memory(bytes_for(run), run);
}

void Scheduler::preempt_last() {
  std::unique_ptr<Task>& task = running_.back();
  release(*task);
  running_sequences_ -= task->search->width();
  waiting_.push_front(std::move(task));
  running_.pop_back();
  has_preempted_ = true;
  ++statistics_.preemptions;
}

// Preempts later tasks until the next tokens of running_[index] fit; false: it was preempted itself.
bool Scheduler::make_room(size_t index) {
  // First release blocks that sliding windows have passed.
  for (const Sequence& sequence : running_[index]->search->sequences()) {
    HEED_CHECK(cache_.extend(sequence.kv_sequence, 0),
               "scheduler: extending by 0 rows must succeed");
  }
  const auto needed = [&] {
    int64_t blocks = 0;
    for (const Sequence& sequence : running_[index]->search->sequences()) {
      blocks += cache_.blocks_to_extend(sequence.kv_sequence,
                                        std::min(sequence.pending(), options_.batch_tokens));
    }
    return blocks;
  };
  while (needed() > cache_.available_blocks()) {
    const bool is_last = index + 1 == running_.size();
    HEED_CHECK(!is_last || index > 0, "scheduler: the first task must fit alone");
    preempt_last();
    if (is_last) return false;
  }
  return true;
}

// Adds its next tokens while the batch has room. The last tokens of all its sequences are in one
// step, because the search needs their logits together.
void Scheduler::add_rows(Task& task) {
  std::vector<Sequence>& sequences = task.search->sequences();
  int64_t pending = 0;
  for (const Sequence& sequence : sequences) pending += sequence.pending();
  int64_t room = options_.batch_tokens - batch_.rows();
  const bool is_decode_step = pending == static_cast<int64_t>(sequences.size());
  const bool completes = pending <= room || (is_decode_step && batch_.empty());
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = sequences[i];
    const int64_t rows = completes ? sequence.pending() : std::min(sequence.pending() - 1, room);
    if (rows <= 0) continue;
    const bool added =
        batch_.add(sequence.kv_sequence,
                   std::span(sequence.ids)
                       .subspan(static_cast<size_t>(sequence.cached), static_cast<size_t>(rows)));
    HEED_CHECK(added, "scheduler: reserved blocks must be available");
    room -= rows;
    sequence.cached += rows;
    if (!completes) continue;
    output_rows_.push_back(batch_.last_rows().back());
    outputs_.push_back({&task, i});
  }
  if (completes) stepping_.push_back(&task);
}

void Scheduler::build_batch() {
  batch_.clear();
  output_rows_.clear(), outputs_.clear(), stepping_.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    if (batch_.rows() >= options_.batch_tokens || !make_room(i)) break;
    add_rows(*running_[i]);
  }
}

void Scheduler::run_decoder() {
  const Transformer& transformer = network_.transformer();
  const KvView view = batch_.view();
  ++statistics_.ticks, statistics_.rows += batch_.rows();
  for (Task* task : stepping_) task->search->prepare();
  const auto run = [&](Ctx& ctx) {
    const Var hidden = transformer.decode(ctx, batch_.batch(), view, output_rows_);
    if (output_rows_.empty()) return;
    const Var logits = transformer.logits(ctx, hidden);
    ctx.parallel(logits.rows(), choice_grain(logits.cols()), [&](int64_t begin, int64_t end) {
      std::unique_ptr<SearchScratch> scratch;
      {
        const std::lock_guard lock(scratch_mutex_);
        if (free_scratch_.empty()) free_scratch_.push_back(std::make_unique<SearchScratch>());
        scratch = std::move(free_scratch_.back());
        free_scratch_.pop_back();
      }
      for (int64_t row = begin; row < end; ++row) {
        const OutputRow& output = outputs_[static_cast<size_t>(row)];
        output.task->search->choose(
            output.sequence, {logits.value.row(row), static_cast<size_t>(logits.cols())}, *scratch);
      }
      const std::lock_guard lock(scratch_mutex_);
      free_scratch_.push_back(std::move(scratch));
    });
  };
  with_memory(bytes_for_decoder(run), run);
  // Other requests may share the prompt's blocks (prefix caching).
  for (std::unique_ptr<Task>& task : running_) {
    const TextSearch& search = *task->search;
    if (has_source_ || search.new_tokens() > 0) continue;
    const Sequence& sequence = search.sequences().front();
    if (sequence.kv_sequence >= 0) {
      cache_.publish(sequence.kv_sequence,
                     std::span(sequence.ids).first(static_cast<size_t>(sequence.cached)));
    }
  }
}

void Scheduler::take_steps() {
  bool any_finished = false;
  for (Task* task : stepping_) {
    const int64_t sequences = task->search->width();
    try {
      task->search->advance(cache_);
      task->on_step();
      if (task->search->is_finished()) task->on_finish();
    } catch (...) {
      release(*task);
      task->search->sequences().clear();
      task->on_error(std::current_exception());
    }
    if (!task->search->is_finished()) continue;
    running_sequences_ -= sequences;
    any_finished = true;
    has_preempted_ = false;
  }
  if (any_finished) {
    std::erase_if(running_, [](const auto& task) { return task->search->is_finished(); });
  }
}

void Scheduler::run(const std::function<void(Ctx& ctx)>& work) {
  with_memory(bytes_for(work), work);
}

}  // namespace heed
