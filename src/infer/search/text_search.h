// The search for one request's answers: its live sequences and its finished hypotheses.
//
//   TextSearch search(plan, prompt);
//   while (!search.is_finished()) {
//     … run the model on the pending tokens of sequences(); logits of each one's last token …
//     search.prepare();
//     for (size_t i = 0; i < search.sequences().size(); ++i) search.choose(i, logits[i], scratch);
//     search.advance(cache);
//   }
//   std::vector<Hypothesis> answers = std::move(search).take();
//
// Greedy search, sampling and beam search are one loop: sequences are extended by candidates, some
// are finished, the others continue. Only the selection of the candidates differs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "infer/cache/kv_cache.h"
#include "infer/search/hypotheses.h"
#include "infer/search/phrases.h"
#include "infer/search/sampler.h"

namespace heed {

// Options with the limits of the model and the prompt, and phrases as ids.
struct SearchPlan {
  SearchOptions options;
  int64_t min_new_tokens = 0, max_new_tokens = 0;
  std::vector<int32_t> banned{};  // phrases of one token
  Phrases banned_phrases{};       // longer ones
  Phrases required{};
  uint64_t stream = 0;
  // Compute the answers' scores. A beam has them anyway; without one they cost a log-sum-exp over
  // the vocabulary for each token, and are 0 if off.
  bool scores = true;
  // Whether these new tokens contain a stop string; not set: never.
  std::function<bool(std::span<const int32_t> ids)> stops{};
};

// A live hypothesis of one request.
struct Sequence {
  std::vector<int32_t> ids;  // the prompt first
  float sum = 0;
  std::vector<float> token_scores{};  // if requested
  uint64_t sample = 0;                // index of the request's sample
  // K and V of the first `cached` ids; negative: none.
  KvCache::Sequence kv_sequence = -1;
  int64_t cached = 0;

  int64_t pending() const { return static_cast<int64_t>(ids.size()) - cached; }
};

// Working memory of choose(); one for each thread.
struct SearchScratch {
  Sampler sampler{};
  std::vector<float> scores{};  // [vocabulary]
  std::vector<int32_t> banned{};
  std::vector<int32_t> longer{};  // a sequence and one more token
};

// After the first steps, and up to the length that memory is reserved for, a step allocates nothing
// but the copies of finished hypotheses.
class TextSearch {
 public:
  TextSearch(SearchPlan plan, std::vector<int32_t> prompt);
  TextSearch(const TextSearch&) = delete;
  TextSearch& operator=(const TextSearch&) = delete;

  // The live sequences. The scheduler updates kv_sequence and cached.
  std::vector<Sequence>& sequences() { return sequences_; }
  const std::vector<Sequence>& sequences() const { return sequences_; }

  // Before the choose() calls of a step.
  void prepare();
  // Finds the candidates of one sequence from its logits [vocabulary]. Different sequences may run
  // at the same time, each with its own scratch.
  void choose(size_t sequence, std::span<const float> logits, SearchScratch& scratch);
  // After choose() for every sequence: extends them by one token, forks and releases their KV cache.
  void advance(KvCache& cache);

  bool is_finished() const { return sequences_.empty(); }
  int64_t new_tokens() const { return new_tokens_; }  // of the live sequences
  size_t prompt_tokens() const { return prompt_tokens_; }
  const SearchPlan& plan() const { return plan_; }
  // Sequences at the same time, at most.
  int64_t width() const { return plan_.options.sample ? plan_.options.nbest : plan_.options.beam; }
  // When finished: best first (samples in their order).
  std::vector<Hypothesis> take() &&;

 private:
  struct Candidate {
    size_t parent = 0;
    int32_t token = 0;
    float sum = 0;
    float token_score = 0;
    uint64_t sample = 0;
    int64_t met = 0;  // tokens of required phrases
  };

  bool is_beam() const { return plan_.options.beam > 1; }
  void reserve(Sequence& sequence) const;
  bool is_end(int32_t id) const;
  std::span<const int32_t> new_ids(const Sequence& sequence) const;
  TokenRules rules(const Sequence& sequence, std::vector<int32_t>& banned) const;
  void choose_one(size_t sequence, std::span<const float> logits, SearchScratch& scratch);
  void choose_many(size_t sequence, std::span<const float> logits, SearchScratch& scratch);
  int64_t most_candidates() const;
  void rank_candidates();
  bool stops(const Candidate& candidate);
  void advance_each(KvCache& cache);
  void advance_beam(KvCache& cache);
  void finish(const Candidate& candidate, FinishReason reason);
  void add_answer(Hypothesis hypothesis, uint64_t sample);
  void continue_survivors(KvCache& cache);
  void finish_sequences(KvCache& cache);
  void release_sequences(KvCache& cache);
  void spread_over_progress();

  SearchPlan plan_;
  size_t prompt_tokens_;
  int64_t new_tokens_ = 0;
  std::vector<Sequence> sequences_, next_;
  std::vector<std::vector<Candidate>> candidates_;  // [sequences]
  std::vector<Candidate> ranked_, survivors_;
  std::vector<int32_t> longer_;                           // a sequence and one more token
  std::vector<size_t> children_;                          // [sequences]
  Hypotheses finished_;                                   // of a beam
  std::vector<std::pair<uint64_t, Hypothesis>> answers_;  // by sample, without a beam
};

}  // namespace heed
