#include "data/batches/stream.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <queue>
#include <utility>

#include "data/batches/plan.h"
#include "data/objectives/items.h"
#include "data/records/corpus.h"
#include "heed/error.h"

namespace heed {

namespace {

void check_options(const StreamOptions& options) {
  std::string problems;
  const auto check = [&](bool fine, const std::string& problem) {
    if (!fine) problems += (problems.empty() ? "" : "; ") + problem;
  };
  const auto check_share = [&](double share, const char* name) {
    check(share >= 0 && share <= 1, std::string(name) + " must be from 0 to 1");
  };
  const ObjectiveOptions& objective = options.objective;
  check(!options.corpora.empty(), "there is no corpus");
  check(options.batch_tokens > 0, "batch_tokens must be above 0");
  check(options.batch_sentences >= 0, "batch_sentences must not be negative");
  check(options.temperature > 0, "temperature must be above 0");
  check(options.ranks > 0 && options.rank >= 0 && options.rank < options.ranks,
        "rank must be below ranks");
  check(objective.block_tokens > 0, "block_tokens must be above 0");
  check(objective.mask_copies >= 0, "mask_copies must not be negative");
  check(objective.mean_span >= 1 && objective.mean_span < 100,
        "mean_span must be from 1 to below 100");
  check(options.filters.max_tokens > 0, "max_tokens must be above 0");
  check_share(objective.subword_dropout, "subword_dropout");
  check(objective.subword_dropout == 0 || objective.kind == Objective::translation,
        "subword_dropout is for translation");
  check_share(objective.mask_rate, "mask_rate");
  check_share(objective.mask_share, "mask_share");
  check_share(objective.random_share, "random_share");
  check_share(objective.mask_share + objective.random_share, "mask_share + random_share");
  check_share(objective.next_sentence_random, "next_sentence_random");
  check_share(objective.short_sequences, "short_sequences");
  check_share(objective.permute_sentences, "permute_sentences");
  double weights = 0;
  for (const CorpusOptions& corpus : options.corpora) {
    check(corpus.weight >= 0 && std::isfinite(corpus.weight), "weight must not be negative");
    weights += corpus.weight;
  }
  check(options.corpora.empty() || weights > 0, "one corpus at least needs a weight");
  if (!problems.empty()) throw Error(ErrorCode::invalid_argument, "data: " + problems);
}

// Numbers by value (2 before 10), other labels alphabetically.
bool label_less(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fine = error == std::errc{} && end == text.data() + text.size();
    return fine ? std::optional(value) : std::nullopt;
  };
  const auto number_a = number(a), number_b = number(b);
  if (number_a && number_b && *number_a != *number_b) return *number_a < *number_b;
  if (number_a.has_value() != number_b.has_value()) return number_a.has_value();
  return a < b;
}

std::vector<std::string> all_labels(const std::vector<Corpus>& corpora) {
  std::vector<std::string> labels;
  for (const Corpus& corpus : corpora) {
    labels.insert(labels.end(), corpus.labels.begin(), corpus.labels.end());
  }
  std::sort(labels.begin(), labels.end(), label_less);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

std::vector<int32_t> map_labels(const std::vector<std::string>& from,
                                const std::vector<std::string>& to) {
  std::vector<int32_t> map;
  for (const std::string& label : from) {
    const auto found = std::find(to.begin(), to.end(), label);
    map.push_back(found != to.end() ? static_cast<int32_t>(found - to.begin()) : -1);
  }
  return map;
}

}  // namespace

struct BatchStream::State {
  State(const StreamOptions& stream_options, TokenizerPtr stream_tokenizer)
      : options(stream_options), tokenizer(std::move(stream_tokenizer)) {
    check_options(options);
    for (size_t c = 0; c < options.corpora.size(); ++c) {
      corpora.push_back(open_corpus(options, c, *tokenizer));
    }
    labels = options.labels.empty() ? all_labels(corpora) : options.labels;
    const bool wants_words =
        options.objective.whole_words && (options.objective.kind == Objective::masked_lm ||
                                          options.objective.kind == Objective::denoising);
    for (int64_t id = 0; wants_words && id < tokenizer->vocabulary_size(); ++id) {
      begins_word.push_back(tokenizer->begins_word(static_cast<int32_t>(id)));
    }
    for (const Corpus& corpus : corpora) label_maps.push_back(map_labels(corpus.labels, labels));
    for (size_t c = 0; c < corpora.size(); ++c) add_items(c);
    planner.emplace(options, items);
  }

  void add_items(size_t c) {
    CorpusReport report = corpora[c].report;
    items.push_back(make_items({.options = options,
                                .corpus = corpora[c],
                                .corpus_number = static_cast<uint32_t>(c),
                                .tokenizer = *tokenizer,
                                .begins_word = begins_word,
                                .label_map = label_maps[c]},
                               report));
    if (items.back()->size() == 0) throw_no_examples(report);
    reports.push_back(std::move(report));
  }

  const PoolPlan& plan_at(uint64_t epoch, uint64_t pool) {
    if (!plan || plan_epoch != epoch || plan_pool != pool) {
      plan = planner->plan(epoch, pool);
      plan_epoch = epoch;
      plan_pool = pool;
    }
    return *plan;
  }

  // To the next batch, skipping empty pools.
  void advance(Cursor& cursor) {
    ++cursor.batch;
    while (cursor.batch >= plan_at(cursor.epoch, cursor.pool).size()) {
      cursor.batch = 0;
      if (++cursor.pool >= planner->pools()) {
        cursor.pool = 0;
        ++cursor.epoch;
      }
    }
  }

  TrainingBatch make(std::span<const PlannedItem> planned) const {
    TrainingBatch batch;
    size_t rows = 0;
    for (const PlannedItem& item : planned) rows += item.rows;
    for (auto* numbers :
         {&batch.input.tokens, &batch.input.positions, &batch.input.token_types, &batch.labels}) {
      numbers->reserve(rows);
    }
    for (const PlannedItem& item : planned) {
      items[item.corpus]->append(static_cast<int64_t>(item.item), item.pass, batch);
    }
    return batch;
  }

  StreamOptions options;
  TokenizerPtr tokenizer;
  std::vector<Corpus> corpora;
  std::vector<std::string> labels;
  std::vector<uint8_t> begins_word;
  std::vector<std::vector<int32_t>> label_maps;
  std::vector<std::unique_ptr<Items>> items;
  std::vector<CorpusReport> reports;
  std::optional<Planner> planner;
  std::optional<PoolPlan> plan;
  uint64_t plan_epoch = 0, plan_pool = 0;
};

BatchStream::BatchStream(const StreamOptions& options, TokenizerPtr tokenizer)
    : state_(std::make_unique<State>(options, std::move(tokenizer))) {}
BatchStream::BatchStream(BatchStream&&) noexcept = default;
BatchStream& BatchStream::operator=(BatchStream&&) noexcept = default;
BatchStream::~BatchStream() = default;

TrainingBatch BatchStream::next(Cursor& cursor) {
  State& state = *state_;
  if (cursor.pool >= state.planner->pools() ||
      cursor.batch >= state.plan_at(cursor.epoch, cursor.pool).size()) {
    throw Error(ErrorCode::invalid_argument,
                "the cursor (epoch " + std::to_string(cursor.epoch) + ", pool " +
                    std::to_string(cursor.pool) + ", batch " + std::to_string(cursor.batch) +
                    ") must be a position of this corpus with these options",
                "resume with the data and batch sizes of the original run");
  }
  Cursor moving = cursor;
  for (int rank = 0; rank < state.options.rank; ++rank) state.advance(moving);
  TrainingBatch batch = state.make(state.plan_at(moving.epoch, moving.pool).batch(moving.batch));
  for (int rank = state.options.rank; rank < state.options.ranks; ++rank) state.advance(moving);
  cursor = moving;
  return batch;
}

TrainingBatch BatchStream::largest_batch() {
  const State& state = *state_;
  const auto shorter_first = [](const PlannedItem& a, const PlannedItem& b) {
    return a.rows > b.rows;
  };
  // The longest items seen so far, as many as fit into a batch.
  std::priority_queue<PlannedItem, std::vector<PlannedItem>, decltype(shorter_first)> longest(
      shorter_first);
  int64_t rows = 0;
  for (uint32_t c = 0; c < state.items.size(); ++c) {
    for (int64_t i = 0; i < state.items[c]->size(); ++i) {
      const int64_t item_rows = state.items[c]->most_rows(i);
      longest.push({.corpus = c,
                    .rows = static_cast<uint32_t>(item_rows),
                    .item = static_cast<uint64_t>(i),
                    .pass = 0});
      rows += item_rows;
      const int64_t most = state.options.batch_sentences;
      while (longest.size() > 1 && (rows - longest.top().rows >= state.options.batch_tokens ||
                                    (most > 0 && std::ssize(longest) > most))) {
        rows -= longest.top().rows;
        longest.pop();
      }
    }
  }
  std::vector<PlannedItem> planned;
  for (; !longest.empty(); longest.pop()) planned.push_back(longest.top());
  // From the longest, while they fit.
  std::reverse(planned.begin(), planned.end());
  TrainingBatch batch;
  int64_t left = state.options.batch_tokens;
  for (const PlannedItem& item : planned) {
    const Items& items = *state.items[item.corpus];
    const bool fits = batch.sequences() == 0 || item.rows <= left;
    if (!fits && (!items.varies() || left < 2)) break;
    // Where lengths vary, some pass may fill the batch.
    items.append_most(static_cast<int64_t>(item.item), fits ? item.rows : left, batch);
    if (!fits) break;
    left -= item.rows;
  }
  return batch;
}

int64_t BatchStream::examples() const { return state_->planner->epoch_items(); }

int64_t BatchStream::corpus_tokens() const {
  int64_t tokens = 0;
  for (const CorpusReport& report : state_->reports) tokens += report.tokens;
  return tokens;
}

const std::vector<std::string>& BatchStream::labels() const { return state_->labels; }
const std::vector<CorpusReport>& BatchStream::reports() const { return state_->reports; }

}  // namespace heed
