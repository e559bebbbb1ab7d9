// Engine: answers many requests at once, from any number of threads.
//
//   heed::Model model = heed::Model::load("models/shakespeare");
//   heed::Engine engine(model);
//   heed::Handle handle = engine.submit({.text = "Once upon a time"});
//   heed::Result result = handle.get();              // result.best().text
//
// One scheduler runs the requests of all callers together: at every tick it drops what was
// cancelled, admits what fits, and runs the model once for all of them. A request waits when there
// is no memory for it; one that could never run is refused. What a request gets never depends on
// the others: its result has the same bits alone, among a thousand, and with any number of threads.
// With several workers there are as many schedulers over the one model, and each request goes to
// the one that has least to do.
//
// heed/translate.h has shortcuts for one text at a time.
//
// Errors: submit() throws invalid_argument for what makes no sense and unsupported for a model that
// does not generate. Handle::get() throws what went wrong later: cancelled, internal.
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
  int threads = 0;  // of each worker; 0: its share of the CPUs this process may use
  int workers = 1;  // schedulers, each with its own threads and batches
  // For keys and values, and texts (beams counted) that grow at the same time: of all workers, each
  // of which has an equal share. Memory is used as needed.
  uint64_t kv_memory_bytes = uint64_t{1} << 30;
  int64_t batch_tokens = 1024;  // rows of one run of the model, at most
  int64_t max_sequences = 256;
  bool scores = true;  // of requests that do not say: see Request::scores
};

struct Request {
  // The source of an encoder-decoder model, or the prompt of a decoder-only one: as text, or if
  // `ids` is set as raw ids with all that the model's template adds.
  std::string text{};
  std::optional<std::vector<int32_t>> ids{};
  // How the answer begins: its target text. The search goes on from there.
  std::string prefix{};
  std::vector<int32_t> prefix_ids{};
  // Of multilingual models: "fr", or the token's own name ("fra_Latn", "__fr__", ">>fr<<").
  std::string source_language{}, target_language{};

  std::optional<SearchOptions> search{};  // nothing: the model's own
  uint64_t stream = 0;                    // samples of different streams are independent
  // Whether Answer::score is wanted; nothing: what the engine's options say. Without a beam it
  // takes a sum over the vocabulary for every token. The text is the same.
  std::optional<bool> scores{};
  // Sources with more tokens than the model has positions are an error, unless they may be cut.
  bool may_truncate = false;
  std::optional<std::chrono::steady_clock::time_point> deadline{};
};

enum class FinishReason {
  end,     // the model ended the text
  stop,    // a stop text came
  length,  // the greatest length was reached
};
const char* name(FinishReason reason);

// Which part of the source a token of the answer comes from, by the decoder's attention.
struct Alignment {
  int64_t token = 0;  // of Answer::ids
  TextSpan target{};  // of Answer::text
  TextSpan source{};  // of Request::text
  int64_t source_token = 0;
  double weight = 0;  // how much of the attention
};

struct Answer {
  std::string text;          // without prompt and special tokens; empty without a tokenizer
  std::vector<int32_t> ids;  // all: the prompt or the decoder's start first
  int64_t new_tokens = 0;    // the last ones of ids, with the one that ended the text
  // Sum of log-probabilities, after the length penalty; 0 if nobody asked and there is no beam.
  double score = 0;
  FinishReason finish = FinishReason::end;
  std::vector<float> token_scores;    // of the new tokens, when asked for
  std::vector<Alignment> alignments;  // likewise
};

struct Result {
  std::vector<Answer> answers;  // best first; at least one
  int64_t input_tokens = 0;     // of the source or the prompt
  bool truncated = false;       // the source was longer than the model reads, and was cut

  const Answer& best() const { return answers.front(); }
};

// While a text grows: only without a beam (its texts change until the end) and with one answer.
struct StreamPiece {
  std::vector<int32_t> ids;  // new ones
  std::string text;          // new text; whole characters only, so it may lag behind the ids
};

// Called on the thread of the request's worker, each worker's one at a time: be quick, and do not
// wait for this engine there. What they throw ends their request and comes out of Handle::get().
struct Callbacks {
  std::function<void(const StreamPiece&)> piece{};
  std::function<void()> done{};  // the result, or the error, is ready
};

// A request that is under way. Copies are of the same request; dropping them does not cancel it.
class Handle {
 public:
  // Waits. Throws the request's error: cancelled when it was, or was too late.
  Result get() const;
  bool is_ready() const;
  bool wait_for(std::chrono::nanoseconds time) const;  // whether it is ready
  void cancel() const;                                 // soon, or not at all if it is done

  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

struct EngineStatistics {
  int64_t submitted = 0, answered = 0, failed = 0;  // failed: cancelled ones too
  int64_t waiting = 0, running = 0;                 // now
  int64_t ticks = 0, rows = 0;                      // runs of the decoder, and their rows in all
  int64_t source_rows = 0;                          // of the encoder
  int64_t new_tokens = 0;
  int64_t preemptions = 0;  // requests that made room for others
  int64_t kv_blocks = 0, kv_blocks_used = 0;
};

class Engine {
 public:
  // Throws unsupported for a model that does not generate.
  explicit Engine(Model model, const EngineOptions& options = {});
  // Cancels what is under way. A callback that then submits more gets the error cancelled.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Handle submit(const Request& request, Callbacks callbacks = {});

  // All of them, longest first so that batches are full; on_result(index, result) is called on this
  // thread in the order of the requests, each as soon as it and those before it are there. The
  // first error is thrown, after the rest was cancelled. `is_cancelled`, if given, is asked every
  // now and then: true ends it all with the error cancelled.
  void run(std::vector<Request> requests,
           const std::function<void(size_t index, Result&& result)>& on_result,
           const std::function<bool()>& is_cancelled = {});
  // Raw ids in, raw ids of the best answers out (decoder's start or prompt included).
  std::vector<std::vector<int32_t>> run_ids(const std::vector<std::vector<int32_t>>& inputs,
                                            const SearchOptions& search);

  const Model& model() const;
  EngineStatistics statistics() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heed
