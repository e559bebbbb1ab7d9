// Batch invariance at the paper's base shape: the same requests together, shuffled, on one thread,
// on two workers, and one at a time must give the same ids and the same score bits.
//
// The weights are random and so are the sentences, with the lengths of ordinary captions: what is
// under test is arithmetic, so no data set is needed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "heed/engine.h"
#include "model/network.h"
#include "model/presets.h"

namespace heed {

// Between 4 and 35 tokens, 13 on average, as Multi30k's captions.
inline std::vector<std::vector<int32_t>> random_captions(size_t count, int64_t vocabulary) {
  Random random({.seed = 2016});
  std::vector<std::vector<int32_t>> captions(count);
  for (std::vector<int32_t>& ids : captions) {
    uint32_t length = 4;
    for (int draw = 0; draw < 2; ++draw) length += static_cast<uint32_t>(random.below(10));
    if (random.below(20) == 0) length += static_cast<uint32_t>(random.below(14));
    for (uint32_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(vocabulary - 4))));
    }
  }
  return captions;
}

inline void expect_batch_invariance_at_base_shape(size_t sentences) {
  ModelConfig config = preset("transformer-base");
  config.eos_id = 1, config.pad_id = 0, config.decoder_start_id = 0;
  const std::vector<std::vector<int32_t>> inputs = random_captions(sentences, config.vocabulary);
  const Model model(std::make_shared<const Network>(config, 1), nullptr);
  SearchOptions search;
  search.beam = 2, search.nbest = 2, search.max_new_tokens = 3, search.length_penalty = 0.6;

  using Answers = std::vector<std::pair<std::vector<int32_t>, double>>;
  const auto answers_of = [](const Result& result) {
    Answers answers;
    for (const Answer& answer : result.answers) answers.emplace_back(answer.ids, answer.score);
    return answers;
  };
  const auto run = [&](const std::vector<size_t>& order, int threads, int workers = 1) {
    Engine engine(model, {.threads = threads, .workers = workers});
    std::vector<Request> requests;
    for (const size_t i : order) requests.push_back({.ids = inputs[i], .search = search});
    std::vector<Answers> all(inputs.size());
    engine.run(std::move(requests),
               [&](size_t i, Result&& result) { all[order[i]] = answers_of(result); });
    return all;
  };
  // 383 is coprime to the counts that are used here, so `shuffled` is a permutation.
  std::vector<size_t> in_order(inputs.size()), shuffled(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in_order[i] = i, shuffled[i] = (i * 383) % inputs.size();
  }

  const std::vector<Answers> together = run(in_order, 2);
  EXPECT_EQ(run(shuffled, 2), together);
  EXPECT_EQ(run(in_order, 1), together);
  EXPECT_EQ(run(in_order, 1, 2), together);
  Engine engine(model, {.threads = 2});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(answers_of(engine.submit({.ids = inputs[i], .search = search}).get()), together[i])
        << "sentence " << i;
  }
}

}  // namespace heed
