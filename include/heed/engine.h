// Engine: runs many requests in continuous batches, from any number of threads.
//
//   heed::Model model = heed::Model::load("models/shakespeare");
//   heed::Engine engine(model);
//   heed::Handle handle = engine.submit({.text = "Once upon a time"});
//   heed::Result result = handle.get();              // result.best().text
//
// A scheduler step drops cancelled requests, admits those that fit and runs the model once for all
// of them. A request waits while the KV cache has no room for it; one that could never fit is
// refused. A result never depends on the batch: it has the same bits alone, among a thousand
// requests, and with any number of threads. Several workers are as many schedulers over one model;
// a request is given to the least busy one.
//
// heed/translate.h has shortcuts for one text at a time.
//
// Threads: every function may be called from any thread. Errors: submit() throws invalid_argument
// for invalid options or input, out_of_memory for a request that can never fit, unsupported for a
// model that does not generate. Handle::get() throws later errors: cancelled, internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/model.h"

namespace heed {

struct EngineOptions {
  int threads = 0;  // of each worker; 0: an equal share of the CPUs this process may use
  int workers = 1;  // schedulers, each with its own threads and batches
  // KV cache and sequences (beams counted) of all workers, each of which has an equal share. Memory
  // is allocated as needed.
  uint64_t kv_memory_bytes = uint64_t{1} << 30;
  int64_t max_sequences = 256;
  int64_t batch_tokens = 1024;  // token rows of one forward pass, at most
  bool scores = true;           // default of Request::scores
};

// The one list of these options: flags, C's heed_open_options, Python's load() and checks.
template <class Options, class Other, class Visit>
requires std::same_as<std::remove_const_t<Options>, EngineOptions>
void describe(Options& o, Other& other, Visit&& visit) {
  // Every command has --threads.
  visit(OptionInfo{.name = "threads",
                   .help = "threads of each worker; 0 is an equal share of all CPUs",
                   .min = 0,
                   .max = 1024,
                   .flag = ""},
        o.threads, other.threads);
  visit(OptionInfo{.name = "workers",
                   .help = "batches that run at the same time, each on --threads threads",
                   .min = 1,
                   .max = 1024},
        o.workers, other.workers);
  visit(OptionInfo{.name = "kv_memory_bytes",
                   .help = "memory of the KV cache",
                   .min = 1,
                   .flag = "--kv-memory"},
        o.kv_memory_bytes, other.kv_memory_bytes);
  visit(OptionInfo{.name = "max_sequences",
                   .help = "sequences (beams counted) that decode at the same time",
                   .min = 1},
        o.max_sequences, other.max_sequences);
  visit(
      OptionInfo{
          .name = "batch_tokens", .help = "token rows of one forward pass, at most", .min = 1},
      o.batch_tokens, other.batch_tokens);
  // The commands compute scores when they print them.
  visit(
      OptionInfo{
          .name = "scores", .help = "compute the scores of greedy and sampled answers", .flag = ""},
      o.scores, other.scores);
}

// Which end of an input beyond the context length is cut off.
enum class Truncation {
  no,     // it is an error
  left,   // the beginning: keeps what a language model continues
  right,  // the end
};
template <>
inline constexpr std::array<EnumName<Truncation>, 3> kEnumNames<Truncation>{{
    {Truncation::no, "no"},
    {Truncation::left, "left"},
    {Truncation::right, "right"},
}};

struct Request {
  // The source of an encoder-decoder model, or the prompt of a decoder-only one: as text, or if
  // `ids` is set as raw ids, with all special tokens.
  std::string text{};
  std::optional<std::vector<int32_t>> ids{};
  // The beginning of the answer (target side); the search continues it.
  std::string prefix{};
  std::vector<int32_t> prefix_ids{};
  // Of multilingual models: "fr", or the token's name ("fra_Latn", "__fr__", ">>fr<<").
  std::string source_language{}, target_language{};

  std::optional<SearchOptions> search{};  // not set: Model::search_options()
  uint64_t stream = 0;  // random stream: samples of different ones are independent
  // Whether to compute Answer::score; not set: EngineOptions::scores. Without a beam this takes a
  // log-sum-exp over the vocabulary for every token. The text is the same.
  std::optional<bool> scores{};
  // Of a source or a prompt beyond the context length. A prompt is then as long as leaves room for
  // the maximum number of new tokens, but at least half the context.
  Truncation truncate = Truncation::no;
  std::optional<std::chrono::steady_clock::time_point> deadline{};
};

// The options that generation and translation share, besides SearchOptions.
template <class Options, class Other, class Visit>
void describe_text(Options& o, Other& other, Visit&& visit) {
  visit(OptionInfo{.name = "prefix", .help = "beginning of the answer"}, o.prefix, other.prefix);
  visit(OptionInfo{.name = "source_language",
                   .help = "multilingual models: language of the source, fr or a token"},
        o.source_language, other.source_language);
  visit(
      OptionInfo{.name = "target_language", .help = "multilingual models: language of the answer"},
      o.target_language, other.target_language);
}
template <class Options, class Other, class Visit>
requires std::same_as<std::remove_const_t<Options>, Request>
void describe(Options& o, Other& other, Visit&& visit) { describe_text(o, other, visit); }

enum class FinishReason {
  end,     // an end token
  stop,    // a stop string
  length,  // the maximum length
};
template <>
inline constexpr std::array<EnumName<FinishReason>, 3> kEnumNames<FinishReason>{{
    {FinishReason::end, "end"},
    {FinishReason::stop, "stop"},
    {FinishReason::length, "length"},
}};

// The source token that a token of the answer attends to most (cross-attention).
struct Alignment {
  int64_t token = 0;  // index into Answer::ids
  TextSpan target{};  // of Answer::text
  TextSpan source{};  // of Request::text
  int64_t source_token = 0;
  double weight = 0;  // attention weight
};

struct Answer {
  std::string text;          // without prompt and special tokens; empty without a tokenizer
  std::vector<int32_t> ids;  // with the prompt, or the decoder start token and the prefix
  int64_t new_tokens = 0;    // the last ones of ids, with the end token
  // Sum of log-probabilities after the length penalty; 0 without a beam if scores are off.
  double score = 0;
  FinishReason finish = FinishReason::end;
  std::vector<float> token_scores;    // of the new tokens, if requested
  std::vector<Alignment> alignments;  // if requested
};

struct Result {
  std::vector<Answer> answers;  // best first; at least one
  int64_t input_tokens = 0;     // of the source or the prompt
  bool truncated = false;       // the source or the prompt exceeded the context length
  uint64_t seed = 0;            // of a sampled answer: SearchOptions::seed

  const Answer& best() const { return answers.front(); }
};

// The next part of an answer while it is decoded: only without a beam, whose hypotheses change until
// the end, and with one answer.
struct StreamPiece {
  std::vector<int32_t> ids;  // new ones
  std::string text;          // new text; whole characters only, so it may lag behind the ids
};

// Called on the worker's thread: they must be quick and must not wait for this engine. An exception
// ends the request and is thrown by Handle::get().
struct Callbacks {
  std::function<void(const StreamPiece&)> piece{};
  std::function<void()> done{};  // the result, or the error, is ready
};

// A submitted request. Copies refer to the same request; destroying them does not cancel it.
class Handle {
 public:
  // Waits. Throws the request's error: cancelled after cancel() or the deadline.
  Result get() const;
  bool is_ready() const;
  bool wait_for(std::chrono::nanoseconds time) const;  // whether it is ready
  void cancel() const;                                 // before the next step; no effect when done

  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

struct EngineStatistics {
  int64_t submitted = 0, answered = 0, failed = 0;  // failed: including cancelled
  int64_t waiting = 0, running = 0;                 // now
  int64_t ticks = 0, rows = 0;  // decoder forward passes, and their token rows in total
  int64_t source_rows = 0;      // token rows of the encoder
  int64_t new_tokens = 0;
  int64_t preemptions = 0;  // requests whose KV cache was released for others
  int64_t kv_blocks = 0, kv_blocks_used = 0;
};

class Engine {
 public:
  // Throws unsupported for a model that does not generate.
  explicit Engine(Model model, const EngineOptions& options = {});
  // Cancels running requests. A callback that then submits gets the error cancelled.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Handle submit(const Request& request, Callbacks callbacks = {});

  // Runs all requests, longest first so that batches are full. on_result(index, result) is called on
  // this thread in the order of the requests. Throws the first error, after cancelling the rest.
  // `is_cancelled` is polled; true ends the call with the error cancelled.
  void run(std::vector<Request> requests,
           const std::function<void(size_t index, Result&& result)>& on_result,
           const std::function<bool()>& is_cancelled = {});
  // Raw ids in, ids of the best answers out (with prompt or decoder start token).
  std::vector<std::vector<int32_t>> run_ids(const std::vector<std::vector<int32_t>>& inputs,
                                            const SearchOptions& search);

  const Model& model() const;
  EngineStatistics statistics() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heed
