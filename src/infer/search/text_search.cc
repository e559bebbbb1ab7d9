#include "infer/search/text_search.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/rows/softmax.h"

namespace heed {
namespace {

// Bits of a random stream's number that are the sample's index within a request.
constexpr int kSampleBits = 20;

// New tokens that a sequence reserves memory for.
constexpr int64_t kReservedTokens = 1024;

// Keeps the capacity: assign() alone would leave no room for the next token.
template <class T>
void copy_with_capacity(const std::vector<T>& from, std::vector<T>& to) {
  to.clear();
  to.reserve(from.capacity());
  to.assign(from.begin(), from.end());
}

}  // namespace

TextSearch::TextSearch(SearchPlan plan, std::vector<int32_t> prompt)
    : plan_(std::move(plan)),
      prompt_tokens_(prompt.size()),
      finished_(plan_.options, plan_.max_new_tokens) {
  HEED_CHECK(!prompt.empty() && plan_.max_new_tokens > 0,
             "search: prompt and max_new_tokens must not be empty");
  sequences_.push_back({.ids = std::move(prompt)});
  reserve(sequences_.back());
}

void TextSearch::reserve(Sequence& sequence) const {
  const auto tokens = static_cast<size_t>(std::min(plan_.max_new_tokens, kReservedTokens));
  sequence.ids.reserve(prompt_tokens_ + tokens);
  if (plan_.options.token_scores) sequence.token_scores.reserve(tokens);
}

bool TextSearch::is_end(int32_t id) const {
  return std::ranges::find(plan_.options.end_ids, id) != plan_.options.end_ids.end();
}

std::span<const int32_t> TextSearch::new_ids(const Sequence& sequence) const {
  return std::span(sequence.ids).subspan(prompt_tokens_);
}

TokenRules TextSearch::rules(const Sequence& sequence, std::vector<int32_t>& banned) const {
  const SearchOptions& o = plan_.options;
  banned.assign(plan_.banned.begin(), plan_.banned.end());
  completions(plan_.banned_phrases, sequence.ids, banned);
  if (new_tokens_ < plan_.min_new_tokens) {
    banned.insert(banned.end(), o.end_ids.begin(), o.end_ids.end());
  }
  const bool last = new_tokens_ + 1 == plan_.max_new_tokens;
  return {.options = &o,
          .ids = sequence.ids,
          .prompt_tokens = prompt_tokens_,
          .banned = banned,
          .forced = last && o.forced_last_id >= 0 ? o.forced_last_id
                    : new_tokens_ == 0            ? o.forced_first_id
                                                  : -1};
}

void TextSearch::choose(size_t sequence, std::span<const float> logits, SearchScratch& scratch) {
  HEED_DCHECK(sequence < candidates_.size(), "search: prepare() must be called before choose()");
  candidates_[sequence].clear();
  is_beam() ? choose_many(sequence, logits, scratch) : choose_one(sequence, logits, scratch);
}

void TextSearch::choose_one(size_t index, std::span<const float> logits, SearchScratch& scratch) {
  const Sequence& sequence = sequences_[index];
  const SearchOptions& o = plan_.options;
  const SamplingOptions sampling{.temperature = o.sample ? static_cast<float>(o.temperature) : 0,
                                 .top_k = o.top_k,
                                 .top_p = static_cast<float>(o.top_p),
                                 .min_p = static_cast<float>(o.min_p),
                                 .seed = o.seed,
                                 .scored = plan_.scores || o.token_scores};
  SamplingContext context{.rules = rules(sequence, scratch.banned),
                          .position = static_cast<uint32_t>(new_tokens_)};
  // All samples start from the prompt's one row.
  const uint64_t samples = new_tokens_ == 0 ? static_cast<uint64_t>(width()) : 1;
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t sample = sequence.sample + i;
    context.request = (plan_.stream << kSampleBits) + sample;
    const auto chosen = scratch.sampler.choose(logits, sampling, context);
    if (!chosen) return;
    const float score = context.rules.forced >= 0 ? 0 : chosen->log_probability;
    candidates_[index].push_back({.parent = index,
                                  .token = chosen->token,
                                  .sum = sequence.sum + score,
                                  .token_score = score,
                                  .sample = sample});
  }
}

// Enough that `beam` sequences continue even if all other candidates are end tokens.
int64_t TextSearch::most_candidates() const {
  return std::max<int64_t>(2, 1 + static_cast<int64_t>(plan_.options.end_ids.size())) *
         plan_.options.beam;
}

void TextSearch::choose_many(size_t index, std::span<const float> logits, SearchScratch& scratch) {
  const Sequence& sequence = sequences_[index];
  const float normaliser = kernels::log_sum_exp(logits.data(), static_cast<int64_t>(logits.size()));
  std::vector<float>& scores = scratch.scores;
  scores.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) scores[i] = logits[i] - normaliser;
  TokenRules token_rules = rules(sequence, scratch.banned);

  PhraseProgress phrases;
  if (!plan_.required.empty()) {
    phrases = progress(plan_.required, new_ids(sequence));
    if (phrases.left > 0) {
      scratch.banned.insert(scratch.banned.end(), plan_.options.end_ids.begin(),
                            plan_.options.end_ids.end());
      token_rules.banned = scratch.banned;
    }
  }
  scratch.sampler.apply(token_rules, scores);

  const auto add = [&](int32_t token) {
    const float score = scores[static_cast<size_t>(token)];
    int64_t met = 0;
    if (!plan_.required.empty()) {
      scratch.longer.assign(new_ids(sequence).begin(), new_ids(sequence).end());
      scratch.longer.push_back(token);
      met = progress(plan_.required, scratch.longer).met;
    }
    candidates_[index].push_back({.parent = index,
                                  .token = token,
                                  .sum = sequence.sum + score,
                                  .token_score = score,
                                  .met = met});
  };
  // The next tokens of required phrases are always candidates. They are the only ones when the
  // remaining length, less one for the end token, is just enough for them, or would no longer be
  // after a token that interrupts the phrase in progress.
  const bool is_forced = token_rules.forced >= 0;
  const bool no_room = phrases.left + phrases.begun + 1 >= plan_.max_new_tokens - new_tokens_;
  const bool only_phrases = phrases.left > 0 && no_room && !is_forced;
  const auto best = scratch.sampler.best(scores, most_candidates());
  if (!only_phrases) std::ranges::for_each(best, add);
  for (size_t i = 0; i < phrases.next.size() && !is_forced; ++i) {
    const int32_t token = phrases.next[i];
    const bool is_new =
        std::ranges::find(candidates_[index], token, &Candidate::token) == candidates_[index].end();
    if (is_new) add(token);
  }
}

// Best first; of equal scores the first sequence and the lowest id, as in one concatenated row.
void TextSearch::rank_candidates() {
  ranked_.clear();
  for (const std::vector<Candidate>& list : candidates_) {
    ranked_.insert(ranked_.end(), list.begin(), list.end());
  }
  const auto before = [](const Candidate& a, const Candidate& b) {
    if (a.sum != b.sum) return a.sum > b.sum;
    return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
  };
  std::ranges::sort(ranked_, before);
  const auto most = static_cast<size_t>(most_candidates());
  if (plan_.required.empty() && ranked_.size() > most) ranked_.resize(most);
}

bool TextSearch::stops(const Candidate& candidate) {
  if (!plan_.stops) return false;
  const auto ids = new_ids(sequences_[candidate.parent]);
  longer_.assign(ids.begin(), ids.end());
  longer_.push_back(candidate.token);
  return plan_.stops(longer_);
}

void TextSearch::prepare() { candidates_.resize(sequences_.size()); }

void TextSearch::advance(KvCache& cache) {
  survivors_.clear();
  is_beam() ? advance_beam(cache) : advance_each(cache);
}

void TextSearch::advance_each(KvCache& cache) {
  const bool last = new_tokens_ + 1 == plan_.max_new_tokens;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (candidates_[i].empty()) {  // the rules have banned every token
      add_answer({.ids = sequences_[i].ids,
                  .sum = sequences_[i].sum,
                  .finish = FinishReason::length,
                  .token_scores = sequences_[i].token_scores},
                 sequences_[i].sample);
    }
    for (const Candidate& candidate : candidates_[i]) {
      // NOLINTNEXTLINE(bugprone-branch-clone): forced tokens have priority
      if (last && candidate.token == plan_.options.forced_last_id) {
        finish(candidate, FinishReason::length);
      } else if (is_end(candidate.token)) {
        finish(candidate, FinishReason::end);
      } else if (stops(candidate)) {
        finish(candidate, FinishReason::stop);
      } else if (last) {
        finish(candidate, FinishReason::length);
      } else {
        survivors_.push_back(candidate);
      }
    }
  }
  ++new_tokens_;
  continue_survivors(cache);
}

// One step of transformers' BeamSearchScorer.
void TextSearch::advance_beam(KvCache& cache) {
  rank_candidates();
  if (ranked_.empty()) return finish_sequences(cache);  // the rules have banned every token
  const auto beam = static_cast<size_t>(plan_.options.beam);
  const bool last = new_tokens_ + 1 == plan_.max_new_tokens;
  for (size_t rank = 0; rank < ranked_.size(); ++rank) {
    const Candidate& candidate = ranked_[rank];
    if (is_end(candidate.token)) {
      // An end token beyond the best `beam` would displace better live sequences.
      if (rank >= beam) continue;
      finish(candidate, last && candidate.token == plan_.options.forced_last_id
                            ? FinishReason::length
                            : FinishReason::end);
    } else if (stops(candidate)) {
      if (rank < beam) finish(candidate, FinishReason::stop);
    } else {
      survivors_.push_back(candidate);
    }
    if (plan_.required.empty() && survivors_.size() == beam) break;
  }
  if (!plan_.required.empty()) spread_over_progress();
  ++new_tokens_;
  if (finished_.is_done(ranked_.front().sum, new_tokens_)) return release_sequences(cache);
  continue_survivors(cache);
  if (new_tokens_ == plan_.max_new_tokens) finish_sequences(cache);
}

// Dynamic beam allocation (Post & Vilar 2018): each amount of progress with the required phrases has
// an equal share of the beam. Otherwise sequences without the phrases, being more probable, would
// displace those with them.
void TextSearch::spread_over_progress() {
  std::vector<Candidate> chosen;
  std::vector<bool> taken(survivors_.size());
  const auto beam = std::min(survivors_.size(), static_cast<size_t>(plan_.options.beam));
  std::vector<int64_t> stages;
  for (const Candidate& candidate : survivors_) stages.push_back(candidate.met);
  std::ranges::sort(stages, std::greater<>());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  while (chosen.size() < beam) {
    for (const int64_t stage : stages) {
      for (size_t i = 0; i < survivors_.size() && chosen.size() < beam; ++i) {
        if (taken[i] || survivors_[i].met != stage) continue;
        taken[i] = true;
        chosen.push_back(survivors_[i]);
        break;
      }
    }
  }
  survivors_ = std::move(chosen);
}

void TextSearch::finish(const Candidate& candidate, FinishReason reason) {
  if (is_beam() && !finished_.would_keep(candidate.sum, new_tokens_ + 1)) return;
  const Sequence& sequence = sequences_[candidate.parent];
  Hypothesis hypothesis{.ids = {}, .sum = candidate.sum, .finish = reason};
  hypothesis.ids.reserve(sequence.ids.size() + 1);
  hypothesis.ids.assign(sequence.ids.begin(), sequence.ids.end());
  hypothesis.ids.push_back(candidate.token);
  if (plan_.options.token_scores) {
    hypothesis.token_scores = sequence.token_scores;
    hypothesis.token_scores.push_back(candidate.token_score);
  }
  if (is_beam()) {
    finished_.add(std::move(hypothesis), new_tokens_ + 1);
  } else {
    add_answer(std::move(hypothesis), candidate.sample);
  }
}

void TextSearch::add_answer(Hypothesis hypothesis, uint64_t sample) {
  const auto length = static_cast<int64_t>(hypothesis.ids.size() - prompt_tokens_);
  hypothesis.score = length > 0 ? penalised(hypothesis.sum, length, plan_.options) : 0;
  answers_.emplace_back(sample, std::move(hypothesis));
}

// The survivors become the live sequences. A parent's last child takes over its memory and its KV
// cache; the others get copies.
void TextSearch::continue_survivors(KvCache& cache) {
  children_.assign(sequences_.size(), 0);
  for (const Candidate& candidate : survivors_) ++children_[candidate.parent];
  next_.resize(survivors_.size());
  if (is_beam()) std::ranges::for_each(next_, [&](Sequence& sequence) { reserve(sequence); });
  for (size_t i = 0; i < survivors_.size(); ++i) {
    const Candidate& candidate = survivors_[i];
    Sequence& parent = sequences_[candidate.parent];
    Sequence& child = next_[i];
    if (--children_[candidate.parent] > 0) {
      copy_with_capacity(parent.ids, child.ids);
      copy_with_capacity(parent.token_scores, child.token_scores);
      child.kv_sequence = parent.kv_sequence < 0 ? -1 : cache.fork(parent.kv_sequence);
    } else {
      child.ids.swap(parent.ids);
      child.token_scores.swap(parent.token_scores);
      child.kv_sequence = std::exchange(parent.kv_sequence, -1);
    }
    child.cached = parent.cached;
    child.ids.push_back(candidate.token);
    if (plan_.options.token_scores) child.token_scores.push_back(candidate.token_score);
    child.sum = candidate.sum, child.sample = candidate.sample;
  }
  for (const Sequence& sequence : sequences_) {
    if (sequence.kv_sequence >= 0) cache.release(sequence.kv_sequence);
  }
  sequences_.swap(next_);
}

// Finishes the live sequences at the maximum length. Those without the required phrases are kept
// only if no other hypothesis exists.
void TextSearch::finish_sequences(KvCache& cache) {
  const auto is_complete = [&](std::span<const int32_t> ids) {
    return plan_.required.empty() ||
           progress(plan_.required, ids.subspan(prompt_tokens_)).left == 0;
  };
  const bool any_complete =
      !finished_.list().empty() || std::ranges::any_of(sequences_, [&](const Sequence& sequence) {
        return is_complete(sequence.ids);
      });
  for (Sequence& sequence : sequences_) {
    if (any_complete && !is_complete(sequence.ids)) continue;
    const auto length = static_cast<int64_t>(sequence.ids.size() - prompt_tokens_);
    finished_.add({.ids = std::move(sequence.ids),
                   .sum = sequence.sum,
                   .finish = FinishReason::length,
                   .token_scores = std::move(sequence.token_scores)},
                  std::max<int64_t>(length, 1));
  }
  release_sequences(cache);
}

void TextSearch::release_sequences(KvCache& cache) {
  for (const Sequence& sequence : sequences_) {
    if (sequence.kv_sequence >= 0) cache.release(sequence.kv_sequence);
  }
  sequences_.clear();
}

std::vector<Hypothesis> TextSearch::take() && {
  if (is_beam()) return std::move(finished_).take_best(plan_.options.nbest);
  std::ranges::sort(answers_, {}, [](const auto& answer) { return answer.first; });
  std::vector<Hypothesis> list;
  for (auto& [sample, hypothesis] : answers_) list.push_back(std::move(hypothesis));
  return list;
}

}  // namespace heed
