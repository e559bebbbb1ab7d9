#include "infer/search/token_rules.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "heed/error.h"

namespace heed {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

bool is_token(int32_t id, std::span<const float> scores) {
  return id >= 0 && static_cast<size_t>(id) < scores.size();
}

// Calls visit(score, count) once for each distinct token of `ids`.
template <class Visit>
void for_each_distinct(std::span<const int32_t> ids, std::span<float> scores, TokenScratch& scratch,
                       Visit visit) {
  std::vector<int32_t>& counts = scratch.counts;
  counts.resize(std::max(counts.size(), scores.size()));
  for (const int32_t id : ids) {
    if (is_token(id, scores)) ++counts[static_cast<size_t>(id)];
  }
  for (const int32_t id : ids) {
    if (!is_token(id, scores)) continue;
    const int32_t count = std::exchange(counts[static_cast<size_t>(id)], 0);
    if (count > 0) visit(scores[static_cast<size_t>(id)], count);
  }
}

// Keskar et al. 2019: a positive score is divided by the penalty, a negative one multiplied.
void penalise_repetition(const TokenRules& rules, std::span<float> scores, TokenScratch& scratch) {
  const auto penalty = static_cast<float>(rules.options->repetition_penalty);
  for_each_distinct(rules.ids, scores, scratch, [&](float& score, int32_t) {
    score = score > 0 ? score / penalty : score * penalty;
  });
}

// OpenAI's penalties: logit − count × frequency_penalty − presence_penalty, of generated tokens only.
void penalise_generated(const TokenRules& rules, std::span<float> scores, TokenScratch& scratch) {
  const SearchOptions& o = *rules.options;
  for_each_distinct(rules.new_ids(), scores, scratch, [&](float& score, int32_t count) {
    score -= static_cast<float>(count * o.frequency_penalty + o.presence_penalty);
  });
}

void add_biases(const TokenRules& rules, std::span<float> scores, TokenScratch&) {
  for (const auto& [id, bias] : rules.options->logit_bias) {
    if (is_token(id, scores)) scores[static_cast<size_t>(id)] += static_cast<float>(bias);
  }
}

// Bans every token that would complete an n-gram that the sequence already has.
void ban_repeated_ngrams(const TokenRules& rules, std::span<float> scores, TokenScratch&) {
  const auto before = static_cast<size_t>(rules.options->no_repeat_ngram - 1);
  const std::span<const int32_t> ids = rules.ids;
  if (ids.size() < before) return;
  const auto last = ids.last(before);
  for (size_t i = 0; i + before < ids.size(); ++i) {
    const int32_t next = ids[i + before];
    if (std::ranges::equal(ids.subspan(i, before), last) && is_token(next, scores)) {
      scores[static_cast<size_t>(next)] = kBanned;
    }
  }
}

struct Rule {
  bool (*is_set)(const SearchOptions& options);
  void (*apply)(const TokenRules& rules, std::span<float> scores, TokenScratch& scratch);
};

// Applied in this order.
constexpr Rule kRules[] = {
    {[](const SearchOptions& o) { return o.repetition_penalty != 1; }, penalise_repetition},
    {[](const SearchOptions& o) { return o.presence_penalty != 0 || o.frequency_penalty != 0; },
     penalise_generated},
    {[](const SearchOptions& o) { return !o.logit_bias.empty(); }, add_biases},
    {[](const SearchOptions& o) { return o.no_repeat_ngram > 0; }, ban_repeated_ngrams},
};

}  // namespace

bool TokenRules::are_set() const {
  return forced >= 0 || !banned.empty() ||
         (options &&
          std::ranges::any_of(kRules, [&](const Rule& r) { return r.is_set(*options); }));
}

void apply(const TokenRules& rules, std::span<float> scores, TokenScratch& scratch) {
  if (rules.forced >= 0) {
    std::ranges::fill(scores, kBanned);
    scores[static_cast<size_t>(rules.forced)] = 0;
    return;
  }
  for (const Rule& rule : kRules) {
    if (rules.options && rule.is_set(*rules.options)) rule.apply(rules, scores, scratch);
  }
  for (const int32_t token : rules.banned) scores[static_cast<size_t>(token)] = kBanned;
}

void check_token_ids(const SearchOptions& o, int64_t vocabulary) {
  const auto check = [&](int32_t id, const char* what) {
    if (id >= 0 && id < vocabulary) return;
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " must be a token id below " + std::to_string(vocabulary) +
                    ", got " + std::to_string(id),
                "ids are 0 to " + std::to_string(vocabulary - 1));
  };
  if (o.forced_first_id >= 0) check(o.forced_first_id, "forced_first_id");
  if (o.forced_last_id >= 0) check(o.forced_last_id, "forced_last_id");
  for (const auto& [id, bias] : o.logit_bias) check(id, "logit_bias");
}

}  // namespace heed
