#include "infer/search/text_search.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/rows/softmax.h"

namespace heed {
namespace {

// Samples of one request that are told apart; those of another stream follow.
constexpr int kSampleBits = 20;

// New tokens for which a text has memory from the beginning; a longer one gets more as it grows.
constexpr int64_t kTokensAtFirst = 1024;

// assign() alone would leave no room for the next token.
template <class T>
void copy_with_room(const std::vector<T>& from, std::vector<T>& to) {
  to.clear();
  to.reserve(from.capacity());
  to.assign(from.begin(), from.end());
}

}  // namespace

TextSearch::TextSearch(SearchPlan plan, std::vector<int32_t> prompt)
    : plan_(std::move(plan)),
      prompt_tokens_(prompt.size()),
      finished_(plan_.options, plan_.max_new_tokens) {
  HEED_CHECK(!prompt.empty() && plan_.max_new_tokens > 0, "search: a prompt, and room for more");
  growing_.push_back({.ids = std::move(prompt)});
  make_room(growing_.back());
}

void TextSearch::make_room(GrowingText& text) const {
  const auto tokens = static_cast<size_t>(std::min(plan_.max_new_tokens, kTokensAtFirst));
  text.ids.reserve(prompt_tokens_ + tokens);
  if (plan_.options.token_scores) text.token_scores.reserve(tokens);
}

bool TextSearch::is_end(int32_t id) const {
  return std::ranges::find(plan_.options.end_ids, id) != plan_.options.end_ids.end();
}

std::span<const int32_t> TextSearch::new_ids(const GrowingText& text) const {
  return std::span(text.ids).subspan(prompt_tokens_);
}

TokenRules TextSearch::rules(const GrowingText& text, std::vector<int32_t>& banned) const {
  const SearchOptions& o = plan_.options;
  banned.assign(plan_.banned.begin(), plan_.banned.end());
  completions(plan_.banned_phrases, text.ids, banned);
  if (new_tokens_ < plan_.min_new_tokens) {
    banned.insert(banned.end(), o.end_ids.begin(), o.end_ids.end());
  }
  const bool last = new_tokens_ + 1 == plan_.max_new_tokens;
  return {.options = &o,
          .ids = text.ids,
          .prompt_tokens = prompt_tokens_,
          .banned = banned,
          .forced = last && o.forced_last_id >= 0 ? o.forced_last_id
                    : new_tokens_ == 0            ? o.forced_first_id
                                                  : -1};
}

void TextSearch::choose(size_t text, std::span<const float> logits, Chooser& chooser) {
  HEED_DCHECK(text < candidates_.size(), "search: choose() before prepare()");
  candidates_[text].clear();
  is_beam() ? choose_many(text, logits, chooser) : choose_one(text, logits, chooser);
}

void TextSearch::choose_one(size_t index, std::span<const float> logits, Chooser& chooser) {
  const GrowingText& text = growing_[index];
  const SearchOptions& o = plan_.options;
  const SamplingOptions sampling{.temperature = o.sample ? static_cast<float>(o.temperature) : 0,
                                 .top_k = o.top_k,
                                 .top_p = static_cast<float>(o.top_p),
                                 .min_p = static_cast<float>(o.min_p),
                                 .seed = o.seed,
                                 .scored = plan_.scores || o.token_scores};
  SamplingContext context{.rules = rules(text, chooser.banned),
                          .position = static_cast<uint32_t>(new_tokens_)};
  // All samples begin from the prompt's one row.
  const uint64_t samples = new_tokens_ == 0 ? static_cast<uint64_t>(width()) : 1;
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t sample = text.sample + i;
    context.request = (plan_.stream << kSampleBits) + sample;
    const auto chosen = chooser.sampler.choose(logits, sampling, context);
    if (!chosen) return;
    const float score = context.rules.forced >= 0 ? 0 : chosen->log_probability;
    candidates_[index].push_back({.parent = index,
                                  .token = chosen->token,
                                  .sum = text.sum + score,
                                  .token_score = score,
                                  .sample = sample});
  }
}

// Enough that `beam` texts go on even if all other candidates end.
int64_t TextSearch::most_candidates() const {
  return std::max<int64_t>(2, 1 + static_cast<int64_t>(plan_.options.end_ids.size())) *
         plan_.options.beam;
}

void TextSearch::choose_many(size_t index, std::span<const float> logits, Chooser& chooser) {
  const GrowingText& text = growing_[index];
  const float normaliser = kernels::log_sum_exp(logits.data(), static_cast<int64_t>(logits.size()));
  std::vector<float>& scores = chooser.scores;
  scores.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) scores[i] = logits[i] - normaliser;
  TokenRules token_rules = rules(text, chooser.banned);

  PhraseProgress wanted;
  if (!plan_.required.empty()) {
    wanted = progress(plan_.required, new_ids(text));
    if (wanted.left > 0) {
      chooser.banned.insert(chooser.banned.end(), plan_.options.end_ids.begin(),
                            plan_.options.end_ids.end());
      token_rules.banned = chooser.banned;
    }
  }
  chooser.sampler.apply(token_rules, scores);

  const auto add = [&](int32_t token) {
    const float score = scores[static_cast<size_t>(token)];
    int64_t met = 0;
    if (!plan_.required.empty()) {
      chooser.longer.assign(new_ids(text).begin(), new_ids(text).end());
      chooser.longer.push_back(token);
      met = progress(plan_.required, chooser.longer).met;
    }
    candidates_[index].push_back({.parent = index,
                                  .token = token,
                                  .sum = text.sum + score,
                                  .token_score = score,
                                  .met = met});
  };
  // What is required comes among the candidates, however unlikely; and alone when the room that is
  // left, with one token for the end, is just enough for it, or would no longer be after a token
  // that breaks off the phrase under way.
  const bool is_forced = token_rules.forced >= 0;
  const bool no_room = wanted.left + wanted.begun + 1 >= plan_.max_new_tokens - new_tokens_;
  const bool only_wanted = wanted.left > 0 && no_room && !is_forced;
  const auto best = chooser.sampler.best(scores, most_candidates());
  if (!only_wanted) std::ranges::for_each(best, add);
  for (size_t i = 0; i < wanted.next.size() && !is_forced; ++i) {
    const int32_t token = wanted.next[i];
    const bool is_new =
        std::ranges::find(candidates_[index], token, &Candidate::token) == candidates_[index].end();
    if (is_new) add(token);
  }
}

// Best first; of equal ones that of the first text and of the lowest id, as if all texts' scores
// stood in one row.
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
  const auto ids = new_ids(growing_[candidate.parent]);
  longer_.assign(ids.begin(), ids.end());
  longer_.push_back(candidate.token);
  return plan_.stops(longer_);
}

void TextSearch::prepare() { candidates_.resize(growing_.size()); }

void TextSearch::advance(KvCache& cache) {
  survivors_.clear();
  is_beam() ? advance_beam(cache) : advance_each(cache);
}

void TextSearch::advance_each(KvCache& cache) {
  const bool last = new_tokens_ + 1 == plan_.max_new_tokens;
  for (size_t i = 0; i < growing_.size(); ++i) {
    if (candidates_[i].empty()) {  // the rules have left no token
      add_answer({.ids = growing_[i].ids,
                  .sum = growing_[i].sum,
                  .finish = FinishReason::length,
                  .token_scores = growing_[i].token_scores},
                 growing_[i].sample);
    }
    for (const Candidate& candidate : candidates_[i]) {
      // NOLINTNEXTLINE(bugprone-branch-clone): what is forced comes first
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
  keep_growing(cache);
}

// One step as transformers' BeamSearchScorer takes it.
void TextSearch::advance_beam(KvCache& cache) {
  rank_candidates();
  if (ranked_.empty()) return finish_growing(cache);  // the rules have left no token
  const auto beam = static_cast<size_t>(plan_.options.beam);
  const bool last = new_tokens_ + 1 == plan_.max_new_tokens;
  for (size_t rank = 0; rank < ranked_.size(); ++rank) {
    const Candidate& candidate = ranked_[rank];
    if (is_end(candidate.token)) {
      // An end that is not among the best `beam` would only replace better texts that go on.
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
  if (finished_.is_done(ranked_.front().sum, new_tokens_)) return release_growing(cache);
  keep_growing(cache);
  if (new_tokens_ == plan_.max_new_tokens) finish_growing(cache);
}

// Among texts that have come equally far with what is required the likeliest survive, and those of
// each progress get an equal share (Post & Vilar 2018). Otherwise texts without the phrases, being
// likelier, would drive out those with them.
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
  const GrowingText& text = growing_[candidate.parent];
  Hypothesis hypothesis{.ids = {}, .sum = candidate.sum, .finish = reason};
  hypothesis.ids.reserve(text.ids.size() + 1);
  hypothesis.ids.assign(text.ids.begin(), text.ids.end());
  hypothesis.ids.push_back(candidate.token);
  if (plan_.options.token_scores) {
    hypothesis.token_scores = text.token_scores;
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

// The survivors become the growing texts. A text's last heir takes its memory and its sequence,
// others get copies.
void TextSearch::keep_growing(KvCache& cache) {
  heirs_.assign(growing_.size(), 0);
  for (const Candidate& candidate : survivors_) ++heirs_[candidate.parent];
  next_.resize(survivors_.size());
  if (is_beam()) std::ranges::for_each(next_, [&](GrowingText& text) { make_room(text); });
  for (size_t i = 0; i < survivors_.size(); ++i) {
    const Candidate& candidate = survivors_[i];
    GrowingText& parent = growing_[candidate.parent];
    GrowingText& child = next_[i];
    if (--heirs_[candidate.parent] > 0) {
      copy_with_room(parent.ids, child.ids);
      copy_with_room(parent.token_scores, child.token_scores);
      child.sequence = parent.sequence < 0 ? -1 : cache.fork(parent.sequence);
    } else {
      child.ids.swap(parent.ids);
      child.token_scores.swap(parent.token_scores);
      child.sequence = std::exchange(parent.sequence, -1);
    }
    child.cached = parent.cached;
    child.ids.push_back(candidate.token);
    if (plan_.options.token_scores) child.token_scores.push_back(candidate.token_score);
    child.sum = candidate.sum, child.sample = candidate.sample;
  }
  for (const GrowingText& text : growing_) {
    if (text.sequence >= 0) cache.release(text.sequence);
  }
  growing_.swap(next_);
}

// Takes beams that are not at an end as they are. Where phrases are required, those without them
// only if there is nothing else.
void TextSearch::finish_growing(KvCache& cache) {
  const auto is_complete = [&](std::span<const int32_t> ids) {
    return plan_.required.empty() ||
           progress(plan_.required, ids.subspan(prompt_tokens_)).left == 0;
  };
  const bool any_complete =
      !finished_.list().empty() ||
      std::ranges::any_of(growing_, [&](const GrowingText& text) { return is_complete(text.ids); });
  for (GrowingText& text : growing_) {
    if (any_complete && !is_complete(text.ids)) continue;
    const auto length = static_cast<int64_t>(text.ids.size() - prompt_tokens_);
    finished_.add({.ids = std::move(text.ids),
                   .sum = text.sum,
                   .finish = FinishReason::length,
                   .token_scores = std::move(text.token_scores)},
                  std::max<int64_t>(length, 1));
  }
  release_growing(cache);
}

void TextSearch::release_growing(KvCache& cache) {
  for (const GrowingText& text : growing_) {
    if (text.sequence >= 0) cache.release(text.sequence);
  }
  growing_.clear();
}

std::vector<Hypothesis> TextSearch::take() && {
  if (is_beam()) return std::move(finished_).take_best(plan_.options.nbest);
  std::ranges::sort(answers_, {}, [](const auto& answer) { return answer.first; });
  std::vector<Hypothesis> list;
  for (auto& [sample, hypothesis] : answers_) list.push_back(std::move(hypothesis));
  return list;
}

}  // namespace heed
