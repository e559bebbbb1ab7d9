#include "data/objectives/items.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>

#include "base/check.h"
#include "data/objectives/piece_splits.h"
#include "heed/error.h"

namespace heed {

namespace {

// Philox blocks reserved per item: more than the noise of a document needs.
constexpr int kItemBlockBits = 24;

void append_ids(std::span<const int32_t> ids, std::vector<int32_t>& to) {
  to.insert(to.end(), ids.begin(), ids.end());
}

// Translation and parsing: a source and a target.
class PairItems final : public Items {
 public:
  explicit PairItems(const ItemsInput& input)
      : input_(input), start_(resolve_role_ids(input.objective(), input.tokenizer).start) {
    if (split_rate() > 0) splits_.emplace(input.tokenizer);
  }

  int64_t size() const override { return input_.store().examples(); }
  int64_t rows(int64_t item, uint64_t pass) const override {
    const TokenStore& store = input_.store();
    if (!splits_) return store.first_size(item) + store.second_size(item);
    Random random = input_.noise(item, pass);
    const int64_t source_rows = side(store.first(item), random).rows;
    return source_rows + side(store.second(item), random).rows;
  }
  void append(int64_t item, uint64_t pass, TrainingBatch& batch) const override {
    const TokenStore& store = input_.store();
    if (splits_) {
      Random random = input_.noise(item, pass);
      append_side(store.first(item), random, batch.input.tokens);
      batch.input.end_sequence();
      std::vector<int32_t> target;
      append_side(store.second(item), random, target);
      append_target(start_, target, batch);
    } else {
      append_ids(store.first(item), batch.input.tokens);
      batch.input.end_sequence();
      append_target(start_, store.second(item), batch);
    }
    input_.note_example(item, batch);
  }

  bool varies() const override { return splits_.has_value(); }
  int64_t most_rows(int64_t item) const override {
    if (!splits_) return rows(item, 0);
    return most_of(input_.store().first(item)) + most_of(input_.store().second(item));
  }
  void append_most(int64_t item, int64_t rows, TrainingBatch& batch) const override {
    if (!splits_) return append(item, 0, batch);
    const auto source = input_.store().first(item), target = input_.store().second(item);
    const int64_t source_most = most_of(source), most = source_most + most_of(target);
    rows = std::min(rows, most);
    const int64_t source_rows = std::clamp<int64_t>(rows * source_most / most, 1, rows - 1);
    std::vector<int32_t> ids;
    splits_->append_most(source, ids);
    append_ids(std::span(ids).first(static_cast<size_t>(source_rows)), batch.input.tokens);
    batch.input.end_sequence();
    ids.clear();
    splits_->append_most(target, ids);
    append_target(start_, std::span(ids).first(static_cast<size_t>(rows - source_rows)), batch);
    input_.note_example(item, batch);
  }

 private:
  // One side of an item in one pass.
  struct Side {
    Random random;  // for subword dropout
    int64_t rows;
    bool is_split;
  };

  double split_rate() const { return input_.objective().subword_dropout; }

  // With subword dropout a side may exceed max_tokens, which the filter has not checked: then it is
  // not split. `random` advances to the other side either way.
  Side side(std::span<const int32_t> ids, Random& random) const {
    Side side{.random = random, .rows = std::ssize(ids), .is_split = false};
    const int64_t rows = splits_->count(ids, split_rate(), random);
    side.is_split = rows <= input_.options.filters.max_tokens;
    if (side.is_split) side.rows = rows;
    return side;
  }
  void append_side(std::span<const int32_t> ids, Random& random, std::vector<int32_t>& to) const {
    Side side = this->side(ids, random);
    if (side.is_split) {
      splits_->append(ids, split_rate(), side.random, to);
    } else {
      append_ids(ids, to);
    }
  }
  // The maximum rows of side().
  int64_t most_of(std::span<const int32_t> ids) const {
    return std::min(splits_->most(ids),
                    std::max(input_.options.filters.max_tokens, std::ssize(ids)));
  }

  ItemsInput input_;
  int32_t start_;
  std::optional<PieceSplits> splits_;
};

// Classification, regression, tagging: a text and its label.
class LabelledItems final : public Items {
 public:
  LabelledItems(const ItemsInput& input, CorpusReport& report)
      : input_(input), kind_(input.objective().kind) {
    if (kind_ == Objective::regression) return;
    const bool all_known =
        std::find(input.label_map.begin(), input.label_map.end(), -1) == input.label_map.end();
    if (!all_known) leave_out_unknown(report);
  }

  int64_t size() const override {
    return selected_ ? std::ssize(kept_) : input_.store().examples();
  }
  int64_t rows(int64_t item, uint64_t /*pass*/) const override {
    return input_.store().first_size(example(item));
  }
  void append(int64_t item, uint64_t, TrainingBatch& batch) const override {
    const int64_t number = example(item);
    const auto answer = input_.store().second(number);
    append_ids(input_.store().first(number), batch.input.tokens);
    if (kind_ == Objective::tagging) {
      for (const int32_t label : answer) batch.labels.push_back(label_of(label));
    } else {
      // Token type 1 from the start of the second text.
      batch.input.token_types.resize(
          static_cast<size_t>(int64_t{batch.input.offsets.back()} + answer[0]));
      batch.input.token_types.resize(batch.input.tokens.size(), 1);
      if (kind_ == Objective::regression) {
        batch.scores.push_back(std::bit_cast<float>(answer[1]));
      } else {
        batch.sequence_labels.push_back(label_of(answer[1]));
      }
    }
    batch.input.end_sequence();
    input_.note_example(number, batch);
  }

 private:
  int64_t example(int64_t item) const {
    return selected_ ? kept_[static_cast<size_t>(item)] : item;
  }
  int32_t label_of(int32_t label) const {
    if (label == kIgnoreLabel) return label;
    const int32_t known = input_.label_map[static_cast<size_t>(label)];
    return known >= 0 ? known : kIgnoreLabel;
  }
  // Skips texts of an unknown class; a sentence with an unknown tag still has its other tags.
  void leave_out_unknown(CorpusReport& report) {
    selected_ = kind_ == Objective::classification;
    for (int64_t i = 0; i < input_.store().examples(); ++i) {
      const auto answer = input_.store().second(i);
      const auto labels = kind_ == Objective::classification ? answer.subspan(1) : answer;
      int64_t unknown = 0;
      std::string first;
      for (const int32_t label : labels) {
        if (label == kIgnoreLabel || label_of(label) != kIgnoreLabel) continue;
        if (unknown++ == 0) first = input_.corpus.labels[static_cast<size_t>(label)];
        report.count(Skip::unknown_label, "\"" + first + "\"");
      }
      if (!selected_) continue;
      if (unknown == 0) {
        kept_.push_back(i);
      } else {
        report.tokens -= std::ssize(input_.store().first(i));
      }
    }
    if (!selected_) return;
    report.kept = std::ssize(kept_);
  }

  ItemsInput input_;
  Objective kind_;
  bool selected_ = false;      // only kept_ are used
  std::vector<int64_t> kept_;  // examples
};

}  // namespace

Random ItemsInput::noise(int64_t item, uint64_t pass) const {
  return Random({.seed = options.seed,
                 .step = static_cast<uint32_t>(pass),
                 .site = kNoiseSite + corpus_number},
                static_cast<uint64_t>(item) << kItemBlockBits);
}

void ItemsInput::note_example(int64_t example, TrainingBatch& batch) const {
  batch.examples.push_back(example);
  batch.corpora.push_back(static_cast<int32_t>(corpus_number));
}

void append_target(int32_t start, std::span<const int32_t> labels, TrainingBatch& batch) {
  HEED_CHECK(!labels.empty(), "a target must have an end token");
  batch.target.tokens.push_back(start);
  append_ids(labels.first(labels.size() - 1), batch.target.tokens);
  batch.target.end_sequence();
  append_ids(labels, batch.labels);
}

void Pieces::add(int64_t example, int64_t begin) {
  const int64_t number = begin / piece_tokens_;
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (example > kMost || number > kMost) {
    throw Error(ErrorCode::unsupported, "a corpus must have at most 2^32 documents",
                "split it into several corpora");
  }
  starts_.push_back({static_cast<uint32_t>(example), static_cast<uint32_t>(number)});
}

Piece Pieces::piece(int64_t piece, int64_t length) const {
  const Start& start = starts_[static_cast<size_t>(piece)];
  const int64_t begin = start.number * piece_tokens_;
  return {start.example, begin, std::min(begin + piece_tokens_, length)};
}

std::unique_ptr<Items> make_pair_items(const ItemsInput& input) {
  return std::make_unique<PairItems>(input);
}

std::unique_ptr<Items> make_labelled_items(const ItemsInput& input, CorpusReport& report) {
  return std::make_unique<LabelledItems>(input, report);
}

std::unique_ptr<Items> make_items(const ItemsInput& input, CorpusReport& report) {
  switch (input.objective().kind) {
    case Objective::translation:
    case Objective::parsing:
      return make_pair_items(input);
    case Objective::causal_lm:
      return make_causal_items(input);
    case Objective::masked_lm:
      return make_masked_items(input);
    case Objective::span_corruption:
    case Objective::denoising:
      return make_denoising_items(input);
    case Objective::classification:
    case Objective::regression:
    case Objective::tagging:
      return make_labelled_items(input, report);
  }
  HEED_CHECK(false, "unknown objective");
}

}  // namespace heed
