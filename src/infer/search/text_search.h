// The search for one request's answer: which texts grow, and which are finished.
//
//   TextSearch search(plan, prompt);
//   while (!search.is_finished()) {
//     … run the model on what growing() has not run yet; logits of each text's last token …
//     search.prepare();
//     for (size_t i = 0; i < search.growing().size(); ++i) search.choose(i, logits[i], chooser);
//     search.advance(cache);
//   }
//   std::vector<Hypothesis> answers = std::move(search).take();
//
// Greedy search, sampling and beam search are one loop: texts are extended by candidates, some are
// finished, the others go on. Only which candidates survive differs.
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

// Options after the model, the prompt and the tokenizer have had their say.
struct SearchPlan {
  SearchOptions options;
  int64_t min_new_tokens = 0, max_new_tokens = 0;
  std::vector<int32_t> banned{};  // phrases of one token
  Phrases banned_phrases{};       // longer ones
  Phrases required{};
  uint64_t stream = 0;
  // Whether anybody reads the answers' scores. A beam has them anyway; without one they cost a sum
  // over the vocabulary for each token, and are 0 when nobody does.
  bool scores = true;
  // Whether a text with these new tokens is at its end, for stop texts; none: never.
  std::function<bool(std::span<const int32_t> ids)> stops{};
};

// A text that is not finished.
struct GrowingText {
  std::vector<int32_t> ids;  // the prompt first
  float sum = 0;
  std::vector<float> token_scores{};  // if they are asked for
  uint64_t sample = 0;                // which of a request's samples it is
  // Its keys: those of the first `cached` ids. Negative: none.
  KvCache::Sequence sequence = -1;
  int64_t cached = 0;

  int64_t pending() const { return static_cast<int64_t>(ids.size()) - cached; }
};

// Working memory of choose(); one for each thread.
struct Chooser {
  Sampler sampler{};
  std::vector<float> scores{};  // [vocabulary]
  std::vector<int32_t> banned{};
  std::vector<int32_t> longer{};  // a text and one more token
};

// Once as many texts grow as ever will, and while they are not longer than what memory is taken for
// at the beginning, a step allocates nothing but the copies of texts that are finished.
class TextSearch {
 public:
  TextSearch(SearchPlan plan, std::vector<int32_t> prompt);
  TextSearch(const TextSearch&) = delete;
  TextSearch& operator=(const TextSearch&) = delete;

  // Those whose next token is to be found. Whoever runs the model keeps sequence and cached.
  std::vector<GrowingText>& growing() { return growing_; }
  const std::vector<GrowingText>& growing() const { return growing_; }

  // Before the choosing of a step.
  void prepare();
  // Finds candidates for one text from its logits [vocabulary]. For different texts it may run at
  // the same time, with different choosers.
  void choose(size_t text, std::span<const float> logits, Chooser& chooser);
  // Once all have been chosen for: extends texts by one token, and forks and releases their
  // sequences.
  void advance(KvCache& cache);

  bool is_finished() const { return growing_.empty(); }
  int64_t new_tokens() const { return new_tokens_; }  // of the growing texts
  size_t prompt_tokens() const { return prompt_tokens_; }
  const SearchPlan& plan() const { return plan_; }
  // Texts that grow at the same time, at most.
  int64_t width() const { return plan_.options.sample ? plan_.options.nbest : plan_.options.beam; }
  // After the end, best first (samples in their order).
  std::vector<Hypothesis> take() &&;

 private:
  struct Candidate {
    size_t parent = 0;
    int32_t token = 0;
    float sum = 0;
    float token_score = 0;
    uint64_t sample = 0;
    int64_t met = 0;  // of required phrases
  };

  bool is_beam() const { return plan_.options.beam > 1; }
  void make_room(GrowingText& text) const;
  bool is_end(int32_t id) const;
  std::span<const int32_t> new_ids(const GrowingText& text) const;
  TokenRules rules(const GrowingText& text, std::vector<int32_t>& banned) const;
  void choose_one(size_t text, std::span<const float> logits, Chooser& chooser);
  void choose_many(size_t text, std::span<const float> logits, Chooser& chooser);
  int64_t most_candidates() const;
  void rank_candidates();
  bool stops(const Candidate& candidate);
  void advance_each(KvCache& cache);
  void advance_beam(KvCache& cache);
  void finish(const Candidate& candidate, FinishReason reason);
  void add_answer(Hypothesis hypothesis, uint64_t sample);
  void keep_growing(KvCache& cache);
  void finish_growing(KvCache& cache);
  void release_growing(KvCache& cache);
  void spread_over_progress();

  SearchPlan plan_;
  size_t prompt_tokens_;
  int64_t new_tokens_ = 0;
  std::vector<GrowingText> growing_, next_;
  std::vector<std::vector<Candidate>> candidates_;  // [texts]
  std::vector<Candidate> ranked_, survivors_;
  std::vector<int32_t> longer_;                           // a text and one more token
  std::vector<size_t> heirs_;                             // [texts]
  Hypotheses finished_;                                   // of a beam
  std::vector<std::pair<uint64_t, Hypothesis>> answers_;  // by sample, without a beam
};

}  // namespace heed
