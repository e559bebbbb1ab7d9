#include "infer/engine/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "heed/error.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

// Choosing looks at every score several times, so it is worth a thread for fewer of them.
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
  const int64_t texts = plan.options.sample ? plan.options.nbest : plan.options.beam;
  const int64_t length = prompt_tokens + plan.max_new_tokens;
  const int64_t rows = std::min(length, options_.batch_tokens);
  const int64_t self = cache_.blocks_at_most(length, rows, 0);
  // One more a group: a block that is shared and about to be copied counts twice.
  const auto groups = static_cast<int64_t>(network_.transformer().kv_layout().groups.size());
  return texts * (self + groups) + cache_.blocks_at_most(0, 0, source_tokens);
}

void Scheduler::add(std::unique_ptr<Task> task) { waiting_.push_back(std::move(task)); }

SchedulerStatistics Scheduler::statistics() const {
  SchedulerStatistics now = statistics_;
  now.waiting = static_cast<int64_t>(waiting_.size());
  now.running = static_cast<int64_t>(running_.size());
  return now;
}

void Scheduler::tick() {
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
  running_texts_ = 0;
}

void Scheduler::fail_all(const std::exception_ptr& error) {
  fail_running(error);
  for (std::unique_ptr<Task>& task : waiting_) task->on_error(error);
  waiting_.clear();
}

// Gives back the keys of all its texts.
void Scheduler::release(Task& task) {
  for (GrowingText& text : task.search->growing()) {
    if (text.sequence >= 0) cache_.release(text.sequence);
    text.sequence = -1, text.cached = 0;
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
    const int64_t texts = task->search->width();
    if (!lapsed(task)) return false;
    running_texts_ -= texts;
    is_crowded_ = false;
    return true;
  });
  std::erase_if(waiting_, lapsed);
}

// Whether a task can start without taking from those that run what their next step needs.
bool Scheduler::has_room(const Task& task) const {
  if (running_.empty()) return true;
  if (running_texts_ + task.search->width() > options_.max_sequences) return false;
  const auto groups = static_cast<int64_t>(network_.transformer().kv_layout().groups.size());
  int64_t needed = cache_.blocks_at_most(0, 0, static_cast<int64_t>(task.source.size()));
  for (const GrowingText& text : task.search->growing()) {
    const auto length = static_cast<int64_t>(text.ids.size()) + 1;
    needed += cache_.blocks_at_most(length, std::min(length, options_.batch_tokens), 0) + groups;
  }
  return needed + running_texts_ * groups <= cache_.available_blocks();
}

void Scheduler::admit() {
  int64_t source_rows = 0;
  is_crowded_ = is_crowded_ && !running_.empty();
  while (!waiting_.empty() && !is_crowded_) {
    Task& task = *waiting_.front();
    source_rows += static_cast<int64_t>(task.source.size());
    const bool too_many_rows = source_rows > options_.batch_tokens && !starting_.empty();
    if (too_many_rows || !has_room(task) || !start(task)) return;
    running_texts_ += task.search->width();
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// Opens the sequences of its texts.
bool Scheduler::start(Task& task) {
  std::vector<GrowingText>& texts = task.search->growing();
  GrowingText& first = texts.front();
  first.sequence = cache_.open();
  if (has_source_) {
    if (!cache_.add_source(first.sequence, static_cast<int64_t>(task.source.size()))) {
      release(task);
      return false;
    }
    starting_.push_back(&task);
  }
  for (GrowingText& text : texts) {
    // All have the same source; none has run a token.
    if (&text != &first) text.sequence = has_source_ ? cache_.fork(first.sequence) : cache_.open();
    text.cached = cache_.adopt(text.sequence, text.ids);
  }
  return true;
}

// The temporary memory that it needs, found by walking through it without computing.
template <class Run>
size_t Scheduler::bytes_for(const Run& run) {
  Arena plan = Arena::measuring();
  Ctx measured{pool_, plan};
  run(measured);
  return plan.peak_bytes();
}

// The same for the batch at hand. A bias of attention takes memory for the length of the texts too,
// which changes with every step, and so do texts that run several tokens at once: there it is
// measured each time.
template <class Run>
size_t Scheduler::bytes_for_decoder(const Run& run) {
  const bool has_prompts = batch_.rows() > static_cast<int64_t>(batch_.sequences().size());
  if (network_.config().has_relative_bias() || has_prompts) return bytes_for(run);
  constexpr size_t kMostShapes = 4096;
  const std::pair shape{batch_.rows(), wanted_rows_.size()};
  const auto known = decoder_bytes_.find(shape);
  if (known != decoder_bytes_.end()) return known->second;
  if (decoder_bytes_.size() == kMostShapes) decoder_bytes_.clear();
  return decoder_bytes_[shape] = bytes_for(run);
}

// Runs it in an arena that has at least so much.
template <class Run>
void Scheduler::with_memory(size_t bytes, const Run& run) {
  arena_.rewind({0});  // what a run took that threw
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
    sequences.push_back(task->search->growing().front().sequence);
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
  running_texts_ -= task->search->width();
  waiting_.push_front(std::move(task));
  running_.pop_back();
  is_crowded_ = true;
  ++statistics_.preemptions;
}

// Makes the next tokens of running_[index] fit; false: only by sending that task itself away.
bool Scheduler::make_room(size_t index) {
  // What windows have passed is given back first.
  for (const GrowingText& text : running_[index]->search->growing()) {
    HEED_CHECK(cache_.extend(text.sequence, 0), "scheduler: no room for nothing");
  }
  const auto needed = [&] {
    int64_t blocks = 0;
    for (const GrowingText& text : running_[index]->search->growing()) {
      blocks +=
          cache_.blocks_to_extend(text.sequence, std::min(text.pending(), options_.batch_tokens));
    }
    return blocks;
  };
  while (needed() > cache_.available_blocks()) {
    const bool is_last = index + 1 == running_.size();
    HEED_CHECK(!is_last || index > 0, "scheduler: a task that does not fit even alone");
    preempt_last();
    if (is_last) return false;
  }
  return true;
}

// Its next tokens as far as the batch has room. All of its texts take their last token at the same
// tick, because the search needs their logits together.
void Scheduler::add_rows(Task& task) {
  std::vector<GrowingText>& texts = task.search->growing();
  int64_t pending = 0;
  for (const GrowingText& text : texts) pending += text.pending();
  int64_t room = options_.batch_tokens - batch_.rows();
  const bool single_steps = pending == static_cast<int64_t>(texts.size());
  const bool completes = pending <= room || (single_steps && batch_.empty());
  for (size_t i = 0; i < texts.size(); ++i) {
    GrowingText& text = texts[i];
    const int64_t rows = completes ? text.pending() : std::min(text.pending() - 1, room);
    if (rows <= 0) continue;
    const bool added = batch_.add(
        text.sequence,
        std::span(text.ids).subspan(static_cast<size_t>(text.cached), static_cast<size_t>(rows)));
    HEED_CHECK(added, "scheduler: room that was made is gone");
    room -= rows;
    text.cached += rows;
    if (!completes) continue;
    wanted_rows_.push_back(batch_.last_rows().back());
    wanted_.push_back({&task, i});
  }
  if (completes) stepping_.push_back(&task);
}

void Scheduler::build_batch() {
  batch_.clear();
  wanted_rows_.clear(), wanted_.clear(), stepping_.clear();
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
    const Var hidden = transformer.decode(ctx, batch_.batch(), view, wanted_rows_);
    if (wanted_rows_.empty()) return;
    const Var logits = transformer.logits(ctx, hidden);
    ctx.parallel(logits.rows(), choice_grain(logits.cols()), [&](int64_t begin, int64_t end) {
      std::unique_ptr<Chooser> chooser;
      {
        const std::lock_guard lock(choosers_mutex_);
        if (choosers_.empty()) choosers_.push_back(std::make_unique<Chooser>());
        chooser = std::move(choosers_.back());
        choosers_.pop_back();
      }
      for (int64_t row = begin; row < end; ++row) {
        const Wanted& wanted = wanted_[static_cast<size_t>(row)];
        wanted.task->search->choose(
            wanted.text, {logits.value.row(row), static_cast<size_t>(logits.cols())}, *chooser);
      }
      const std::lock_guard lock(choosers_mutex_);
      choosers_.push_back(std::move(chooser));
    });
  };
  with_memory(bytes_for_decoder(run), run);
  // Prompts that others may begin with too.
  for (std::unique_ptr<Task>& task : running_) {
    const TextSearch& search = *task->search;
    if (has_source_ || search.new_tokens() > 0) continue;
    const GrowingText& text = search.growing().front();
    if (text.sequence >= 0) {
      cache_.publish(text.sequence, std::span(text.ids).first(static_cast<size_t>(text.cached)));
    }
  }
}

void Scheduler::take_steps() {
  bool any_finished = false;
  for (Task* task : stepping_) {
    const int64_t texts = task->search->width();
    try {
      task->search->advance(cache_);
      task->on_step();
      if (task->search->is_finished()) task->on_finish();
    } catch (...) {
      release(*task);
      task->search->growing().clear();
      task->on_error(std::current_exception());
    }
    if (!task->search->is_finished()) continue;
    running_texts_ -= texts;
    any_finished = true;
    is_crowded_ = false;
  }
  if (any_finished) {
    std::erase_if(running_, [](const auto& task) { return task->search->is_finished(); });
  }
}

std::vector<std::vector<float>> Scheduler::attention(std::span<const int32_t> source,
                                                     std::span<const int32_t> target, size_t rows) {
  const Transformer& transformer = network_.transformer();
  using Sequences = std::vector<std::vector<int32_t>>;
  const PackedBatch sources(Sequences{{source.begin(), source.end()}});
  // The row that chose a token is that of the token before it.
  const PackedBatch targets(Sequences{{target.begin(), target.end() - 1}});
  std::vector<std::vector<float>> result(rows, std::vector<float>(source.size()));
  const auto run = [&](Ctx& ctx) {
    AttentionMaps maps;
    transformer.hidden(
        ctx, {.source = sources.batch(), .target = targets.batch(), .decoder_maps = &maps});
    if (ctx.measuring()) return;
    // The last layer but one follows the words best (Garg et al. 2019).
    const int layers = network_.config().decoder_layers;
    const std::string name = "decoder." + std::to_string(std::max(layers - 2, 0)) + ".cross";
    const auto map = std::ranges::find(maps, name, &AttentionMap::name);
    HEED_CHECK(map != maps.end(), "scheduler: no map of cross-attention");
    const size_t keys = source.size(), queries = target.size() - 1;
    const size_t heads = static_cast<size_t>(map->probabilities.size()) / (keys * queries);
    const float* p = map->probabilities.data;
    for (size_t h = 0; h < heads; ++h) {
      for (size_t r = 0; r < rows; ++r) {
        const float* row = p + (h * queries + queries - rows + r) * keys;
        for (size_t k = 0; k < keys; ++k) result[r][k] += row[k] / static_cast<float>(heads);
      }
    }
  };
  with_memory(bytes_for(run), run);
  return result;
}

}  // namespace heed
