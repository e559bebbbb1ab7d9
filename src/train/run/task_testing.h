// Small made-up tasks, for tests of training: batches as a function of a cursor, no files.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "data/batches/stream.h"
#include "model/presets.h"
#include "train/run/trainer.h"

namespace heed {

enum class ToyTask { copy, reverse, sort, add };

// Ids: 0 … 9 the digits; then what separates and ends.
inline constexpr int32_t kPlus = 10, kEquals = 11, kEnd = 12, kStart = 13;
inline constexpr int kToyVocabulary = 14;

struct ToyExample {
  std::vector<int32_t> question, answer;
};

inline void append_digits(int value, std::vector<int32_t>& ids) {  // two of them
  ids.push_back(value / 10), ids.push_back(value % 10);
}

inline ToyExample toy_example(Family family, ToyTask task, Random& random) {
  ToyExample e;
  if (task == ToyTask::add) {  // two numbers below 20, which a small model learns in seconds
    const auto a = static_cast<int>(random.below(20)), b = static_cast<int>(random.below(20));
    append_digits(a, e.question);
    e.question.push_back(kPlus);
    append_digits(b, e.question);
    append_digits(a + b, e.answer);
    return e;
  }
  // Answering all places at once, an encoder would have to count from the end: one length only.
  const auto length = family == Family::encoder_only ? 5 : 3 + random.below(4);
  for (uint64_t i = 0; i < length; ++i) {
    e.question.push_back(static_cast<int32_t>(random.below(10)));
  }
  e.answer = e.question;
  if (task == ToyTask::reverse) std::ranges::reverse(e.answer);
  if (task == ToyTask::sort) std::ranges::sort(e.answer);
  return e;
}

// The example as a family learns it: source and target; one line, of which the answer is asked; or
// an answer under each place of the question.
inline void add_toy_example(Family family, const ToyExample& e, TrainingBatch& batch) {
  const auto append = [](std::vector<int32_t>& to, const std::vector<int32_t>& ids) {
    to.insert(to.end(), ids.begin(), ids.end());
  };
  switch (family) {
    case Family::encoder_decoder:
      append(batch.input.tokens, e.question);
      batch.target.tokens.push_back(kStart);
      append(batch.target.tokens, e.answer);
      append(batch.labels, e.answer);
      batch.labels.push_back(kEnd);
      batch.target.end_sequence();
      break;
    case Family::decoder_only:
      append(batch.input.tokens, e.question);
      batch.input.tokens.push_back(kEquals);
      append(batch.input.tokens, e.answer);
      batch.labels.insert(batch.labels.end(), e.question.size(), kIgnoreLabel);
      append(batch.labels, e.answer);
      batch.labels.push_back(kEnd);
      break;
    case Family::encoder_only: {
      // A sum is shorter than its question.
      std::vector<int32_t> labels = e.answer;
      append(batch.input.tokens, e.question);
      labels.resize(e.question.size(), kEnd);
      append(batch.labels, labels);
      break;
    }
  }
  batch.input.end_sequence();
}

inline TrainingBatch toy_batch(Family family, ToyTask task, uint64_t number, int examples) {
  Random random({.seed = 77, .step = static_cast<uint32_t>(number)});
  TrainingBatch batch;
  for (int i = 0; i < examples; ++i)
    add_toy_example(family, toy_example(family, task, random), batch);
  return batch;
}

inline ModelConfig toy_config(Family family) {
  ModelConfig c = preset(family == Family::decoder_only   ? "gpt2"
                         : family == Family::encoder_only ? "bert-tiny"
                                                          : "transformer-tiny");
  c.vocabulary = kToyVocabulary, c.width = 32, c.heads = 4, c.ffn = 64;
  c.encoder_layers = c.decoder_layers = 2, c.max_positions = 16;
  if (family == Family::encoder_only) c.head = Head::token_classifier, c.labels = kToyVocabulary;
  c.dropout = c.attention_dropout = c.embedding_dropout = 0;
  c.pad_id = c.bos_id = c.eos_id = c.decoder_start_id = -1, c.pad_frozen = false;
  return c;
}

inline constexpr uint64_t kToyValidation = 1 << 20;  // numbers of batches that never train

// Batches from functions.
struct FunctionSource final : BatchSource {
  std::function<TrainingBatch(Cursor&)> next_batch, validation_batch;
  std::function<TrainingBatch()> largest;

  TrainingBatch next(Cursor& cursor) override { return next_batch(cursor); }
  TrainingBatch largest_batch() override { return largest(); }
  bool has_validation() const override { return static_cast<bool>(validation_batch); }
  TrainingBatch next_validation(Cursor& cursor) override { return validation_batch(cursor); }
};

inline FunctionSource toy_source(Family family, ToyTask task, int examples) {
  constexpr uint64_t kPerEpoch = 7;
  FunctionSource source;
  source.next_batch = [=](Cursor& cursor) {
    const uint64_t number = cursor.epoch * kPerEpoch + cursor.batch;
    if (++cursor.batch == kPerEpoch) cursor.batch = 0, ++cursor.epoch;
    return toy_batch(family, task, number, examples);
  };
  source.largest = [=] { return toy_batch(family, task, 0, 2 * examples); };
  source.validation_batch = [=](Cursor& cursor) {
    const TrainingBatch batch = toy_batch(family, task, kToyValidation + cursor.batch, examples);
    if (++cursor.batch == 2) cursor = {.epoch = 1};
    return batch;
  };
  return source;
}

}  // namespace heed
