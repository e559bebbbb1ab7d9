#include "heed/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/text/number_text.h"
#include "base/thread_pool.h"
#include "heed/error.h"
#include "infer/engine/answer_text.h"
#include "infer/engine/request_plan.h"
#include "infer/engine/scheduler.h"
#include "infer/engine/text_stream.h"
#include "infer/engine/word_alignment.h"
#include "infer/search/option_ranges.h"

namespace heed {
namespace {

// Requests that run() sorts by length together; two such windows are submitted at a time.
constexpr size_t kWindow = 512;
// How often run() polls is_cancelled.
constexpr std::chrono::milliseconds kCancelInterval{20};

Model checked(Model model) {
  if (model.can_generate()) return model;
  throw Error(ErrorCode::unsupported,
              "a model of family " + model.family() + " with head " + model.head() +
                  " does not generate text",
              "this needs a decoder and a language_model head");
}

EngineOptions checked(const EngineOptions& options) {
  std::vector<std::string> problems;
  const EngineOptions standard;
  describe(options, standard, [&](const OptionInfo& info, const auto& field, const auto& value) {
    check_range(info, field, value, problems);
  });
  throw_problems(problems);
  return options;
}

// The options of one worker.
EngineOptions share_of(EngineOptions options) {
  const int workers = options.workers;
  options.kv_memory_bytes /= static_cast<uint64_t>(workers);
  options.max_sequences = std::max<int64_t>(options.max_sequences / workers, 1);
  if (options.threads == 0) options.threads = std::max(available_cpus() / workers, 1);
  return options;
}

}  // namespace

// Shared by the handles and the engine's thread.
struct Handle::State {
  std::mutex mutex;
  std::condition_variable ready;
  bool is_ready = false;
  Result result;
  std::exception_ptr error;
  std::atomic<bool> cancelled{false};

  // Called once.
  void answer(Result&& value, std::exception_ptr failure) {
    {
      const std::lock_guard lock(mutex);
      HEED_CHECK(!is_ready, "engine: a request must be answered once");
      result = std::move(value), error = std::move(failure), is_ready = true;
    }
    ready.notify_all();
  }
};

Result Handle::get() const {
  std::unique_lock lock(state_->mutex);
  state_->ready.wait(lock, [&] { return state_->is_ready; });
  if (state_->error) std::rethrow_exception(state_->error);
  return state_->result;
}

bool Handle::is_ready() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_ready;
}

bool Handle::wait_for(std::chrono::nanoseconds time) const {
  std::unique_lock lock(state_->mutex);
  return state_->ready.wait_for(lock, time, [&] { return state_->is_ready; });
}

void Handle::cancel() const { state_->cancelled = true; }

class Engine::Impl {
 public:
  Impl(Model model, const EngineOptions& options);

  class Job;
  // A checked request.
  struct Accepted {
    std::unique_ptr<Job> job;
    Handle handle;
  };
  Accepted accept(const Request& request, Callbacks callbacks);
  void start(std::span<Accepted> requests);
  // Cancels all requests; submit() then throws cancelled.
  void stop();
  const Model& model() const { return model_; }
  EngineStatistics statistics() const;

 private:
  class Worker;

  const Model model_;
  const EngineOptions options_;
  std::atomic<int64_t> submitted_{0}, answered_{0}, failed_{0}, new_tokens_{0};
  std::vector<std::unique_ptr<Worker>> workers_;  // last: joined before the rest is destroyed
};

// A scheduler, and the thread that runs it.
class Engine::Impl::Worker {
 public:
  Worker(const Network& network, const EngineOptions& options)
      : scheduler_(network, options), thread_([this] { loop(); }) {}

  ~Worker() {
    stop();
    join();
  }

  // From any thread.
  void add(std::vector<std::unique_ptr<Task>> tasks);  // throws cancelled after stop()
  void stop();
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void add_to(EngineStatistics& all) const;

  // On the worker's thread; from others only what no step changes.
  Scheduler& scheduler() { return scheduler_; }

  std::atomic<int64_t> sequences{0};  // of unanswered requests: the load

 private:
  void loop();
  void publish_statistics();

  Scheduler scheduler_;  // used by thread_ alone

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Task>> inbox_;
  bool stopping_ = false;
  EngineStatistics statistics_;  // after the last step

  std::thread thread_;  // last: joined before the rest is destroyed
};

Engine::Impl::Impl(Model model, const EngineOptions& options)
    : model_(checked(std::move(model))), options_(checked(options)) {
  const EngineOptions share = share_of(options_);
  const bool is_alone = options_.workers == 1;
  const auto give_up = [&](const std::string& why) {
    const auto started = std::to_string(workers_.size());
    workers_.clear();  // frees memory for the message
    const std::string threads =
        std::to_string(share.threads) + (share.threads == 1 ? " thread" : " threads");
    throw Error(ErrorCode::out_of_memory,
                is_alone ? "cannot start an engine of " + threads + ": " + why
                         : "cannot start " + std::to_string(options_.workers) + " workers of " +
                               threads + " each, only " + started + ": " + why,
                is_alone ? "use fewer threads" : "use fewer workers, or fewer threads for each");
  };
  try {
    for (int i = 0; i < options_.workers; ++i) {
      workers_.push_back(std::make_unique<Worker>(model_.network(), share));
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || is_alone) throw;
    give_up(error.what());
  } catch (const std::system_error& error) {  // of std::thread
    give_up(error.what());
  } catch (const std::bad_alloc&) {
    give_up("there is no more memory");
  }
}

// Stops all before joining any, and destroys none before all are joined: callbacks at the end may
// submit to any of them.
void Engine::Impl::stop() {
  for (const std::unique_ptr<Worker>& worker : workers_) worker->stop();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->join();
}

EngineStatistics Engine::Impl::statistics() const {
  EngineStatistics all{.submitted = submitted_, .answered = answered_, .failed = failed_};
  all.new_tokens = new_tokens_;
  for (const std::unique_ptr<Worker>& worker : workers_) worker->add_to(all);
  return all;
}

// A request in a scheduler.
class Engine::Impl::Job : public Task {
 public:
  Job(Impl& engine, RequestPlan plan, Callbacks callbacks, std::shared_ptr<Handle::State> state)
      : engine_(engine),
        callbacks_(std::move(callbacks)),
        state_(std::move(state)),
        source_spans_(std::move(plan.source_spans)) {
    result_.input_tokens = plan.input_tokens, result_.truncated = plan.truncated;
    if (is_random(plan.search.options)) result_.seed = plan.search.options.seed;
    source = std::move(plan.source);
    const bool streams =
        callbacks_.piece && plan.search.options.beam == 1 && plan.search.options.nbest == 1;
    if (streams && engine.model_.has_tokenizer()) {
      stream_.emplace(engine.model_.tokenizer_pointer(), plan.search.options.stop, plan.prompt);
    }
    streams_ = streams;
    streamed_ = plan.prompt.size();
    search = std::make_unique<TextSearch>(std::move(plan.search), std::move(plan.prompt));
    sequences_ = search->width();
  }

  // Before the worker gets it.
  void assign_to(Worker& worker) {
    worker_ = &worker;
    worker.sequences += sequences_;
  }

  bool is_cancelled() const override { return state_->cancelled.load(std::memory_order_relaxed); }

  void on_step() override {
    if (streams_ && !search->sequences().empty())
      send_pieces(search->sequences().front().ids, false);
  }

  void on_finish() override {
    const SearchPlan plan = search->plan();
    const size_t prompt = search->prompt_tokens();
    for (Hypothesis& hypothesis : std::move(*search).take()) {
      result_.answers.push_back(make_answer(std::move(hypothesis), plan.options, prompt));
    }
    HEED_CHECK(!result_.answers.empty(), "engine: a search must have an answer");
    if (streams_) send_pieces(result_.best().ids, true);
    for (const Answer& answer : result_.answers) engine_.new_tokens_ += answer.new_tokens;
    ++engine_.answered_;
    answer({});
  }

  void on_error(std::exception_ptr error) noexcept override {
    ++engine_.failed_;
    answer(std::move(error));
  }

 private:
  void answer(std::exception_ptr error) {
    worker_->sequences -= sequences_;
    state_->answer(std::move(result_), std::move(error));
    if (!callbacks_.done) return;
    try {
      callbacks_.done();
    } catch (...) {
      // The request is answered: no error can be reported.
    }
  }

  void send_pieces(std::span<const int32_t> ids, bool last) {
    StreamPiece piece;
    for (; streamed_ < ids.size(); ++streamed_) {
      piece.ids.push_back(ids[streamed_]);
      if (stream_) piece.text += stream_->add(ids[streamed_]);
    }
    if (last && stream_) piece.text += stream_->finish();
    if (!piece.ids.empty() || !piece.text.empty()) callbacks_.piece(piece);
  }

  Answer make_answer(Hypothesis&& hypothesis, const SearchOptions& options, size_t prompt) {
    Answer answer;
    answer.ids = std::move(hypothesis.ids);
    answer.new_tokens = static_cast<int64_t>(answer.ids.size() - prompt);
    answer.score = hypothesis.score, answer.finish = hypothesis.finish;
    if (options.token_scores) answer.token_scores = std::move(hypothesis.token_scores);
    if (engine_.model_.has_tokenizer()) {
      answer.text = answer_text(engine_.model_, answer.ids, prompt, options.stop);
    }
    if (options.alignments) {
      answer.alignments = align_words(
          engine_.model_, source, source_spans_, answer,
          [&](const std::function<void(Ctx&)>& work) { worker_->scheduler().run(work); });
    }
    return answer;
  }

  Impl& engine_;
  Worker* worker_ = nullptr;
  int64_t sequences_ = 0;  // at the same time
  Callbacks callbacks_;
  std::shared_ptr<Handle::State> state_;
  std::vector<TextSpan> source_spans_;
  Result result_;
  bool streams_ = false;
  std::optional<TextStream> stream_;
  size_t streamed_ = 0;  // ids that were sent
};

Engine::Impl::Accepted Engine::Impl::accept(const Request& request, Callbacks callbacks) {
  RequestPlan plan = plan_request(model_, request);
  plan.search.scores = request.scores.value_or(options_.scores);
  const Scheduler& any = workers_.front()->scheduler();
  const int64_t needed = any.blocks_needed(static_cast<int64_t>(plan.source.size()),
                                           static_cast<int64_t>(plan.prompt.size()), plan.search);
  if (needed > any.kv_blocks()) {
    const auto size = [&](int64_t blocks) {
      return megabytes(blocks * any.kv_block_bytes()) + " (" + std::to_string(blocks) + " blocks)";
    };
    throw Error(ErrorCode::out_of_memory,
                "the request must fit into the KV cache of " + size(any.kv_blocks()) +
                    (workers_.size() > 1 ? " of each worker" : "") + ", got " + size(needed),
                std::string("increase the KV cache memory, or request fewer new tokens or beams") +
                    (workers_.size() > 1 ? ", or use fewer workers" : ""));
  }
  auto state = std::make_shared<Handle::State>();
  auto job = std::make_unique<Job>(*this, std::move(plan), std::move(callbacks), state);
  job->deadline = request.deadline;
  return {std::move(job), Handle(std::move(state))};
}

// Each to the least busy worker.
void Engine::Impl::start(std::span<Accepted> requests) {
  std::vector<std::vector<std::unique_ptr<Task>>> shares(workers_.size());
  for (Accepted& request : requests) {
    const auto least_busy = std::ranges::min_element(
        workers_, {},
        [](const std::unique_ptr<Worker>& worker) { return worker->sequences.load(); });
    request.job->assign_to(**least_busy);
    shares[static_cast<size_t>(least_busy - workers_.begin())].push_back(std::move(request.job));
  }
  submitted_ += static_cast<int64_t>(requests.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i].empty()) workers_[i]->add(std::move(shares[i]));
  }
}

void Engine::Impl::Worker::add(std::vector<std::unique_ptr<Task>> tasks) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Error(ErrorCode::cancelled, "the engine is being shut down");
    for (std::unique_ptr<Task>& task : tasks) inbox_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void Engine::Impl::Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

void Engine::Impl::Worker::add_to(EngineStatistics& all) const {
  const std::lock_guard lock(mutex_);
  all.waiting += statistics_.waiting + static_cast<int64_t>(inbox_.size());
  all.running += statistics_.running;
  all.ticks += statistics_.ticks, all.rows += statistics_.rows;
  all.source_rows += statistics_.source_rows, all.preemptions += statistics_.preemptions;
  all.kv_blocks += statistics_.kv_blocks, all.kv_blocks_used += statistics_.kv_blocks_used;
}

void Engine::Impl::Worker::publish_statistics() {
  const SchedulerStatistics now = scheduler_.statistics();
  const std::lock_guard lock(mutex_);
  statistics_.waiting = now.waiting, statistics_.running = now.running;
  statistics_.ticks = now.ticks, statistics_.rows = now.rows;
  statistics_.source_rows = now.source_rows, statistics_.preemptions = now.preemptions;
  statistics_.kv_blocks = scheduler_.kv_blocks();
  statistics_.kv_blocks_used = scheduler_.kv_blocks_used();
}

void Engine::Impl::Worker::loop() {
  std::vector<std::unique_ptr<Task>> arrived;
  while (true) {
    publish_statistics();
    bool stop = false;
    {
      std::unique_lock lock(mutex_);
      if (scheduler_.is_idle()) {
        wake_.wait(lock, [&] { return stopping_ || !inbox_.empty(); });
      }
      arrived.swap(inbox_);
      stop = stopping_;
    }
    for (std::unique_ptr<Task>& task : arrived) scheduler_.add(std::move(task));
    arrived.clear();
    if (stop) break;
    try {
      scheduler_.step();
    } catch (...) {
      scheduler_.fail_running(std::current_exception());
    }
  }
  scheduler_.fail_all(std::make_exception_ptr(
      Error(ErrorCode::cancelled, "the engine was shut down before the request was done")));
  publish_statistics();
}

Engine::Engine(Model model, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Engine::~Engine() { impl_->stop(); }

Handle Engine::submit(const Request& request, Callbacks callbacks) {
  Impl::Accepted accepted = impl_->accept(request, std::move(callbacks));
  impl_->start({&accepted, 1});
  return std::move(accepted.handle);
}

const Model& Engine::model() const { return impl_->model(); }
EngineStatistics Engine::statistics() const { return impl_->statistics(); }

void Engine::run(std::vector<Request> requests,
                 const std::function<void(size_t index, Result&& result)>& on_result,
                 const std::function<bool()>& is_cancelled) {
  std::vector<std::optional<Handle>> handles(requests.size());
  const auto length = [&](size_t i) {
    return requests[i].ids ? requests[i].ids->size() : requests[i].text.size();
  };
  const auto submit_window = [&](size_t begin) {
    const size_t end = std::min(begin + kWindow, requests.size());
    if (begin >= end) return;
    std::vector<size_t> order(end - begin);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(order, std::greater<>(), length);
    std::vector<Impl::Accepted> accepted;  // started together for full batches
    for (const size_t i : order) {
      try {
        accepted.push_back(impl_->accept(requests[i], {}));
      } catch (const Error& error) {
        if (requests.size() == 1) throw;
        throw Error(error.code(), "input " + std::to_string(i + 1) + ": " + error.what(),
                    error.hint());
      }
      handles[i] = accepted.back().handle;
      requests[i] = {};
    }
    impl_->start(accepted);
  };
  try {
    submit_window(0);
    for (size_t i = 0; i < requests.size(); ++i) {
      if (i % kWindow == 0) submit_window(i + kWindow);
      while (is_cancelled && !handles[i]->wait_for(kCancelInterval)) {
        if (is_cancelled()) throw Error(ErrorCode::cancelled, "the requests were cancelled");
      }
      on_result(i, handles[i]->get());
      handles[i].reset();
    }
  } catch (...) {
    for (const std::optional<Handle>& handle : handles) {
      if (handle) handle->cancel();
    }
    throw;
  }
}

std::vector<std::vector<int32_t>> Engine::run_ids(const std::vector<std::vector<int32_t>>& inputs,
                                                  const SearchOptions& search) {
  std::vector<Request> requests(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    requests[i].ids = inputs[i], requests[i].search = search, requests[i].stream = i;
  }
  std::vector<std::vector<int32_t>> outputs(inputs.size());
  run(std::move(requests),
      [&](size_t i, Result&& result) { outputs[i] = std::move(result.answers.front().ids); });
  return outputs;
}

}  // namespace heed
