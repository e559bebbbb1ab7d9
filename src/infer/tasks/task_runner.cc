#include "infer/tasks/task_runner.h"

#include <algorithm>
#include <numeric>

#include "heed/error.h"

namespace heed {
namespace {

// Rows whose logits exist at a time: enough to amortise reading the output matrix.
constexpr size_t kLogitRows = 128;

// Tokens [begin, end) of one text inside an encoding.
struct TextTokens {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

// Texts are separated by the special tokens of the template.
std::vector<TextTokens> texts_of(const Encoding& encoding) {
  std::vector<TextTokens> texts;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    if (encoding.is_special[i]) continue;
    if (i == 0 || encoding.is_special[i - 1]) texts.push_back({i, i});
    texts.back().end = i + 1;
  }
  return texts;
}

// The commands for each head.
std::string verbs_of(const ModelConfig& config) {
  switch (config.head) {
    case Head::language_model:
      return config.family == Family::encoder_decoder ? "translate, score, embed, attend"
                                                      : "generate, score, embed, attend";
    case Head::masked_lm:
      return "fill, embed, attend";
    case Head::classifier:
    case Head::regression:
      return "classify, embed, attend";
    case Head::token_classifier:
      return "tag, embed, attend";
    case Head::none:
    case Head::embedding:
      return "embed, attend";
  }
  return "";
}

}  // namespace

void need_head(const Model& model, std::span<const Head> heads, const std::string& task) {
  const ModelConfig& config = model.network().config();
  if (std::ranges::find(heads, config.head) != heads.end()) return;
  std::string needed;
  for (const Head head : heads)
    needed += (needed.empty() ? "" : " or ") + std::string(name_of(head));
  throw Error(ErrorCode::unsupported,
              task + " takes a model with a " + needed + " head; this one is " + model.family() +
                  " with head = " + model.head(),
              "commands for this model: " + verbs_of(config));
}

void need_single_texts(const std::vector<TaskInput>& inputs, const std::string& task) {
  if (std::ranges::any_of(inputs,
                          [](const TaskInput& input) { return input.second.has_value(); })) {
    throw Error(ErrorCode::invalid_argument, task + " takes one text for each input, found a pair",
                "join the texts, or give them as two inputs");
  }
}

bool truncate(Encoding& encoding, int64_t max_tokens) {
  int64_t surplus = std::ssize(encoding.ids) - max_tokens;
  if (surplus <= 0) return false;
  std::vector<TextTokens> texts = texts_of(encoding);
  for (; surplus > 0; --surplus) {
    const auto longest = std::ranges::max_element(texts, {}, &TextTokens::size);
    if (longest == texts.end() || longest->size() == 0) break;
    --longest->end;
  }
  std::vector<uint8_t> kept(encoding.is_special);
  for (const TextTokens& text : texts) {
    std::fill(kept.begin() + static_cast<ptrdiff_t>(text.begin),
              kept.begin() + static_cast<ptrdiff_t>(text.end), uint8_t{1});
  }
  size_t count = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    // A template beyond the context length is truncated too.
    if (!kept[i] || static_cast<int64_t>(count) == max_tokens) continue;
    encoding.ids[count] = encoding.ids[i];
    encoding.offsets[count] = encoding.offsets[i];
    encoding.types[count] = encoding.types[i];
    encoding.is_special[count] = encoding.is_special[i];
    ++count;
  }
  encoding.ids.resize(count), encoding.offsets.resize(count);
  encoding.types.resize(count), encoding.is_special.resize(count);
  return true;
}

TaskRunner::TaskRunner(Model model, const TaskOptions& options)
    : model_(std::move(model)), options_(options), pool_(options.threads) {}

int64_t TaskRunner::max_tokens(int64_t requested) const {
  int64_t limit = 0;
  for (const int64_t tokens : {options_.max_tokens, requested}) {
    if (tokens > 0) limit = limit > 0 ? std::min(limit, tokens) : tokens;
  }
  // Beyond its training length a model's results are poor: only on request.
  const int64_t most = model_.max_positions();
  return limit == 0 || model_.positions_are_fixed() ? std::min(limit > 0 ? limit : most, most)
                                                    : limit;
}

ReadInput TaskRunner::read(const TaskInput& input, int64_t max_tokens) const {
  ReadInput read{.text = input.text};
  if (input.ids.empty()) {
    const Tokenizer& tokenizer = model_.tokenizer();
    read.encoding = input.second ? tokenizer.encode_pair(input.text, *input.second)
                                 : tokenizer.encode(input.text);
  } else {
    if (!input.types.empty() && input.types.size() != input.ids.size()) {
      throw Error(ErrorCode::invalid_argument,
                  "there are " + std::to_string(input.types.size()) + " token types for " +
                      std::to_string(input.ids.size()) + " ids",
                  "give one type for each id, or none");
    }
    const size_t count = input.ids.size();
    read.encoding.ids = input.ids;
    read.encoding.types = input.types;
    read.encoding.types.resize(count);
    read.encoding.offsets.resize(count);
    read.encoding.is_special.resize(count);
  }
  read.truncated = truncate(read.encoding, max_tokens);
  return read;
}

std::vector<ReadInput> TaskRunner::read(const std::vector<TaskInput>& inputs,
                                        int64_t max_tokens) const {
  std::vector<ReadInput> all(inputs.size());
  pool_.parallel_for(std::ssize(inputs), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      all[i] = read(inputs[i], max_tokens);
    }
  });
  return all;
}

TaskSequence TaskRunner::sequence(const Encoding& encoding) const {
  TaskSequence sequence{.ids = encoding.ids, .types = encoding.types};
  if (config().token_types < 2) std::ranges::fill(sequence.types, 0);
  return sequence;
}

TaskBatch TaskRunner::make_batch(std::span<const TaskSequence> sequences,
                                 std::vector<size_t> members) const {
  std::vector<std::vector<int32_t>> ids, types, targets;
  bool has_targets = false;
  for (const size_t member : members) {
    ids.push_back(sequences[member].ids);
    types.push_back(sequences[member].types);
    types.back().resize(ids.back().size());
    targets.push_back(sequences[member].target);
    has_targets = has_targets || !targets.back().empty();
  }
  return {.members = std::move(members),
          .source = PackedBatch(ids, types),
          .target = has_targets ? PackedBatch(targets) : PackedBatch()};
}

void TaskRunner::run(std::span<const TaskSequence> sequences,
                     const std::function<bool()>& is_cancelled, const Step& step) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return sequences[i].ids.empty(); });
  std::ranges::stable_sort(order, std::greater{}, [&](size_t i) { return sequences[i].tokens(); });

  const std::lock_guard one_at_a_time(running_);
  const auto budget = static_cast<size_t>(std::max<int64_t>(1, options_.batch_tokens));
  for (size_t next = 0; next < order.size();) {
    throw_if_cancelled(is_cancelled);
    std::vector<size_t> members;
    size_t tokens = 0;
    while (next < order.size() &&
           (members.empty() || tokens + sequences[order[next]].tokens() <= budget)) {
      tokens += sequences[order[next]].tokens();
      members.push_back(order[next++]);
    }
    const TaskBatch batch = make_batch(sequences, std::move(members));
    Arena plan = Arena::measuring();
    Ctx measuring{pool_, plan};
    step(measuring, batch);
    if (!arena_ || arena_->capacity_bytes() < plan.peak_bytes()) arena_.emplace(plan.peak_bytes());
    arena_->rewind({0});
    Ctx ctx{pool_, *arena_};
    step(ctx, batch);
  }
}

Var TaskRunner::hidden(Ctx& ctx, const TaskBatch& batch) const {
  return transformer().hidden(ctx,
                              {.source = batch.source.batch(), .target = batch.target.batch()});
}

void TaskRunner::each_logits(Ctx& ctx, Var hidden, std::span<const int32_t> rows,
                             const std::function<bool()>& is_cancelled,
                             const VisitLogits& visit) const {
  for (size_t begin = 0; begin < rows.size(); begin += kLogitRows) {
    if (!ctx.measuring()) throw_if_cancelled(is_cancelled);
    const auto tile = rows.subspan(begin, std::min(kLogitRows, rows.size() - begin));
    const Arena::Mark mark = ctx.arena.mark();
    const Var logits = transformer().logits(ctx, take_rows(ctx, hidden, tile));
    ctx.parallel(logits.rows(), 1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        visit(begin + static_cast<size_t>(r),
              {logits.value.row(r), static_cast<size_t>(logits.cols())});
      }
    });
    ctx.arena.rewind(mark);
  }
}

}  // namespace heed
