// Tagging: labels of words, and the spans they form.
#include <algorithm>

#include "infer/tasks/softmax.h"
#include "infer/tasks/tag_spans.h"
#include "infer/tasks/task_runner.h"

namespace heed {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";

// Words are separated by white space, as in training.
std::vector<TaggedWord> words_of(const std::string& text) {
  std::vector<TaggedWord> words;
  for (size_t begin = 0; (begin = text.find_first_not_of(kSpace, begin)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.push_back({.span = {static_cast<int64_t>(begin), static_cast<int64_t>(end)}});
    begin = end;
  }
  return words;
}

// The span without the leading white space that some tokenizers include.
TextSpan without_space(TextSpan span, const std::string& text) {
  while (span.begin < span.end &&
         kSpace.find(text[static_cast<size_t>(span.begin)]) != kSpace.npos) {
    ++span.begin;
  }
  return span;
}

TagPart most_probable(std::span<const float> logits, TextSpan span) {
  const auto label = std::ranges::max_element(logits) - logits.begin();
  return {span, static_cast<int>(label), softmax(logits)[static_cast<size_t>(label)]};
}

// `logits` [tokens, labels]
void interpret(const ReadInput& read, std::span<const float> logits,
               const std::vector<std::string>& labels, Aggregation aggregation, Tagged& tagged) {
  const Encoding& encoding = read.encoding;
  tagged.words = words_of(read.text);
  std::vector<TagPart> tokens;
  size_t word = 0;
  for (size_t t = 0; t < encoding.ids.size(); ++t) {
    const TextSpan span = without_space(encoding.offsets[t], read.text);
    if (encoding.is_special[t] || span.begin >= span.end) continue;
    const TagPart part = most_probable(logits.subspan(t * labels.size(), labels.size()), span);
    tokens.push_back(part);
    while (word < tagged.words.size() && tagged.words[word].span.end <= span.begin) ++word;
    if (word == tagged.words.size() || tagged.words[word].label >= 0) continue;
    tagged.words[word].label = part.label;
    tagged.words[word].name = labels[static_cast<size_t>(part.label)];
    tagged.words[word].probability = part.probability;
  }
  if (aggregation == Aggregation::first) {
    tokens.clear();
    for (const TaggedWord& w : tagged.words) {
      if (w.label >= 0) tokens.push_back({w.span, w.label, w.probability});
    }
  }
  tagged.spans = tag_spans(tokens, labels);
}

}  // namespace

Tagger::Tagger(Model model, const TaskOptions& options)
    : runner_(std::make_shared<TaskRunner>(std::move(model), options)) {
  need_head(runner_->model(), {{Head::token_classifier}}, "tagging words");
}

const std::vector<std::string>& Tagger::labels() const { return runner_->model().labels(); }

std::vector<Tagged> Tagger::tag(const std::vector<TaskInput>& inputs, const TagOptions& options,
                                const std::function<bool()>& is_cancelled) const {
  need_single_texts(inputs, "tagging words");
  const std::vector<ReadInput> read = runner_->read(inputs, runner_->max_tokens());
  std::vector<Tagged> results(inputs.size());
  std::vector<TaskSequence> sequences;
  for (size_t i = 0; i < inputs.size(); ++i) {
    results[i].tokens = std::ssize(read[i].encoding.ids);
    results[i].truncated = read[i].truncated;
    sequences.push_back(runner_->sequence(read[i].encoding));
  }
  runner_->run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    const Batch rows = batch.source.batch();
    const Var logits = runner_->transformer().classify(ctx, runner_->hidden(ctx, batch), rows);
    if (ctx.measuring()) return;
    for (size_t s = 0; s < batch.members.size(); ++s) {
      const size_t i = batch.members[s];
      const std::span<const float> of_input(
          logits.value.row(batch.source.offsets[s]),
          static_cast<size_t>((batch.source.offsets[s + 1] - batch.source.offsets[s]) *
                              logits.cols()));
      interpret(read[i], of_input, labels(), options.aggregation, results[i]);
      if (options.logits) results[i].logits.assign(of_input.begin(), of_input.end());
    }
  });
  return results;
}

}  // namespace heed
