// Log-probabilities of texts.
#include <algorithm>
#include <cmath>

#include "heed/error.h"
#include "infer/tasks/task_runner.h"
#include "kernels/rows/softmax.h"

namespace heed {
namespace {

// Part of an input that runs as one sequence, and what is scored in it.
struct Window {
  size_t input = 0;
  size_t first_row = 0;  // predicts labels[0]; the rows after it, the labels after that
  std::vector<int32_t> labels{};
  size_t place = 0;  // of labels[0] in the result
};

// The scored ids of an input, before it is split into windows.
struct Text {
  std::vector<int32_t> ids;       // with the context that is not scored first
  std::vector<TextSpan> offsets;  // as many
};

// Without the special tokens that the tokenizer appended.
void drop_end(Encoding& encoding) {
  while (!encoding.ids.empty() && encoding.is_special.back()) {
    encoding.ids.pop_back(), encoding.offsets.pop_back(), encoding.is_special.pop_back();
  }
}

Text causal_text(const TaskRunner& runner, const TaskInput& input, const ScoreOptions& options) {
  if (!input.ids.empty()) return {input.ids, std::vector<TextSpan>(input.ids.size())};
  const Tokenizer& tokenizer = runner.model().tokenizer();
  Encoding encoding = tokenizer.encode(input.text);
  if (!options.end) drop_end(encoding);
  Text text{std::move(encoding.ids), std::move(encoding.offsets)};
  int32_t begin_id = tokenizer.special_ids().begin;
  if (begin_id < 0) begin_id = runner.config().bos_id;
  if (options.begin && begin_id >= 0 && (text.ids.empty() || text.ids.front() != begin_id)) {
    text.ids.insert(text.ids.begin(), begin_id);
    text.offsets.insert(text.offsets.begin(), TextSpan{});
  }
  return text;
}

// The decoder start token, the target, and its end token if that is scored.
Text target_text(const TaskRunner& runner, const TaskInput& input, const ScoreOptions& options) {
  const int32_t start = runner.config().decoder_start_id;
  if (start < 0) {
    throw Error(ErrorCode::unsupported, "the model's config.json has no decoder_start_token_id",
                "score cannot know what the decoder begins with");
  }
  Text text;
  if (!input.second_ids.empty()) {
    text.ids = input.second_ids;
    text.offsets.resize(text.ids.size());
  } else {
    if (!input.second) {
      throw Error(ErrorCode::invalid_argument, "an encoder-decoder model scores a target",
                  "give a source and a target");
    }
    const Tokenizer& tokenizer = runner.model().tokenizer();
    Encoding encoding = tokenizer.encode(*input.second, {.side = TextSide::target});
    if (!options.end) drop_end(encoding);
    text = {std::move(encoding.ids), std::move(encoding.offsets)};
    int32_t end = tokenizer.special_ids().end;
    if (end < 0) end = runner.config().eos_id;
    if (options.end && end >= 0 && (text.ids.empty() || text.ids.back() != end)) {
      text.ids.push_back(end);
      text.offsets.emplace_back();
    }
  }
  text.ids.insert(text.ids.begin(), start);
  text.offsets.insert(text.offsets.begin(), TextSpan{});
  return text;
}

}  // namespace

double Scored::perplexity() const {
  return ids.empty() ? 1 : std::exp(-log_probability / static_cast<double>(ids.size()));
}

Scorer::Scorer(Model model, const TaskOptions& options)
    : runner_(std::make_shared<TaskRunner>(std::move(model), options)) {
  need_head(runner_->model(), {{Head::language_model}}, "scoring texts");
}

bool Scorer::has_source() const { return runner_->model().has_source(); }

std::vector<Scored> Scorer::score(const std::vector<TaskInput>& inputs, const ScoreOptions& options,
                                  const std::function<bool()>& is_cancelled) const {
  const auto window = static_cast<size_t>(runner_->max_tokens(options.window));
  const auto stride = static_cast<size_t>(
      options.stride > 0 ? options.stride : std::max<int64_t>(1, static_cast<int64_t>(window / 2)));
  if (stride > window) {
    throw Error(ErrorCode::invalid_argument,
                "a stride of " + std::to_string(stride) + " is longer than the window of " +
                    std::to_string(window) + " tokens",
                "tokens between two windows would not be scored");
  }
  std::vector<Scored> results(inputs.size());
  std::vector<TaskSequence> sequences;
  std::vector<Window> windows;  // one for each sequence
  for (size_t i = 0; i < inputs.size(); ++i) {
    Scored& result = results[i];
    TaskSequence whole;
    Text text = has_source() ? target_text(*runner_, inputs[i], options)
                             : causal_text(*runner_, inputs[i], options);
    if (has_source()) {
      TaskInput source = inputs[i];
      source.second.reset();
      ReadInput read = runner_->read(source, static_cast<int64_t>(window));
      result.truncated = read.truncated || text.ids.size() > window + 1;
      if (text.ids.size() > window + 1) text.ids.resize(window + 1);
      whole = runner_->sequence(read.encoding);
    }
    if (text.ids.size() < 2 || (has_source() && whole.ids.empty())) continue;
    const size_t count = text.ids.size() - 1;  // tokens with a predecessor
    result.ids.assign(text.ids.begin() + 1, text.ids.end());
    result.offsets.assign(text.offsets.begin() + 1,
                          text.offsets.begin() + static_cast<ptrdiff_t>(text.ids.size()));
    result.token_scores.resize(count);
    result.tokens = std::ssize(text.ids) + std::ssize(whole.ids);
    // Row r of the text predicts its token r + 1; the last token predicts nothing.
    size_t done = 0;
    for (size_t begin = 0; done < count; begin += stride) {
      const size_t end = std::min(begin + window, count);
      TaskSequence sequence = whole;
      std::vector<int32_t>& rows = has_source() ? sequence.target : sequence.ids;
      rows.assign(text.ids.begin() + static_cast<ptrdiff_t>(begin),
                  text.ids.begin() + static_cast<ptrdiff_t>(end));
      windows.push_back({.input = i,
                         .first_row = done - begin,
                         .labels = {text.ids.begin() + static_cast<ptrdiff_t>(done) + 1,
                                    text.ids.begin() + static_cast<ptrdiff_t>(end) + 1},
                         .place = done});
      sequences.push_back(std::move(sequence));
      done = end;
    }
  }

  runner_->run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    const PackedBatch& packed = has_source() ? batch.target : batch.source;
    std::vector<int32_t> rows;
    std::vector<std::pair<int32_t, float*>> labels;  // and where the score goes
    for (size_t s = 0; s < batch.members.size(); ++s) {
      const Window& w = windows[batch.members[s]];
      for (size_t t = 0; t < w.labels.size(); ++t) {
        rows.push_back(packed.offsets[s] + static_cast<int32_t>(w.first_row + t));
        labels.push_back({w.labels[t], &results[w.input].token_scores[w.place + t]});
      }
    }
    runner_->each_logits(ctx, runner_->hidden(ctx, batch), rows, is_cancelled,
                         [&](size_t i, std::span<float> logits) {
                           const auto [label, score] = labels[i];
                           if (label < 0 || label >= std::ssize(logits)) {
                             throw Error(ErrorCode::invalid_argument,
                                         "token id " + std::to_string(label) +
                                             " is outside the model's vocabulary of " +
                                             std::to_string(logits.size()));
                           }
                           *score = logits[static_cast<size_t>(label)] -
                                    kernels::log_sum_exp(logits.data(), std::ssize(logits));
                         });
  });
  for (Scored& result : results) {
    for (const float score : result.token_scores) result.log_probability += score;
  }
  return results;
}

}  // namespace heed
