// 500 sentences of Multi30k through a model of the paper's base shape, with random weights: one by
// one, all at once, shuffled, with one thread, with two and with two workers, the answers are the
// same to the last bit. Minutes long, because one by one every step reads all weights for one row.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "base/text_file.h"
#include "infer/engine/engine_testing.h"
#include "model/presets.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

constexpr size_t kSentences = 500;

// Words by a hash of their letters: the weights are random, so any numbering does.
Ids ids_of(const std::string& line, int64_t vocabulary) {
  Ids ids;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    ids.push_back(static_cast<int32_t>(4 + hash % static_cast<uint64_t>(vocabulary - 4)));
  }
  return ids;
}

std::vector<Ids> sentences(int64_t vocabulary) {
  std::vector<Ids> list;
  const std::string path = std::string(HEED_SHARED) + "/data/multi30k/val.en.gz";
  if (!std::ifstream(path)) return list;
  LineReader reader(path);
  for (std::string line; list.size() < kSentences && reader.next(line);) {
    Ids ids = ids_of(line, vocabulary);
    if (!ids.empty()) list.push_back(std::move(ids));
  }
  return list;
}

TEST(BatchInvariance, BaseShape) {
  ModelConfig config = preset("transformer-base");
  config.eos_id = 1, config.pad_id = 0, config.decoder_start_id = 0;
  const std::vector<Ids> inputs = sentences(config.vocabulary);
  if (inputs.size() < kSentences) GTEST_SKIP() << HEED_SHARED << "/data/multi30k is not there";
  const Model model(std::make_shared<const Network>(config, 1), nullptr);
  SearchOptions search;
  search.beam = 2, search.nbest = 2, search.max_new_tokens = 3, search.length_penalty = 0.6;

  using Answers = std::vector<std::pair<Ids, double>>;
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
  std::vector<size_t> plain(inputs.size()), shuffled(inputs.size());
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = i, shuffled[i] = (i * 383) % plain.size();

  const std::vector<Answers> together = run(plain, 2);
  EXPECT_EQ(run(shuffled, 2), together);
  EXPECT_EQ(run(plain, 1), together);
  EXPECT_EQ(run(plain, 1, 2), together);
  Engine engine(model, {.threads = 2});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(answers_of(engine.submit({.ids = inputs[i], .search = search}).get()), together[i]);
  }
}

}  // namespace
}  // namespace heed
