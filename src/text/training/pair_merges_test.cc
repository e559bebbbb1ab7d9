#include "text/training/pair_merges.h"

#include <gtest/gtest.h>

#include <map>

namespace heed {
namespace {

struct Example {
  std::vector<TrainingWord> words;
  std::vector<std::string> names;
};

// Words of single letters.
Example example(const std::vector<std::pair<std::string, int64_t>>& words,
                const std::string& prefix = "") {
  Example result;
  std::map<std::string, int32_t> ids;
  for (const auto& [word, count] : words) {
    TrainingWord training{{}, count};
    for (size_t i = 0; i < word.size(); ++i) {
      const std::string name = (i > 0 ? prefix : "") + word[i];
      const auto id = static_cast<int32_t>(ids.size());
      if (ids.emplace(name, id).second) result.names.push_back(name);
      training.symbols.push_back(ids[name]);
    }
    result.words.push_back(training);
  }
  return result;
}

std::string shown(const std::vector<PairMerge>& merges, const std::vector<std::string>& names) {
  std::string text;
  for (const PairMerge& merge : merges) {
    text += names[static_cast<size_t>(merge.left)] + "+" + names[static_cast<size_t>(merge.right)] +
            "=" + names[static_cast<size_t>(merge.result)] + " ";
  }
  return text;
}

// The worked example of Sennrich, Haddow & Birch (2016), algorithm 1, with "_" for their "</w>".
TEST(PairMerges, LearnsTheExampleOfThePaper) {
  Example e = example({{"low_", 5}, {"lower_", 2}, {"newest_", 6}, {"widest_", 3}});
  const size_t letters = e.names.size();
  const auto merges = learn_merges(
      e.words, e.names, {.symbols = static_cast<int64_t>(letters) + 7, .continuing_prefix = {}});
  // The paper's merges; for ties (e+s, s+t and t+_ at 9) the lower ids win.
  EXPECT_EQ(shown(merges, e.names).substr(0, 41), "e+s=es t+_=t_ es+t_=est_ l+o=lo lo+w=low ");
  EXPECT_EQ(e.names.size(), letters + 7);
}

// The same by recounting all pairs after each merge.
std::vector<PairMerge> slow_merges(Example e, size_t limit, const std::string& prefix) {
  std::vector<PairMerge> merges;
  while (e.names.size() < limit) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const TrainingWord& word : e.words) {
      for (size_t i = 1; i < word.symbols.size(); ++i) {
        counts[{word.symbols[i - 1], word.symbols[i]}] += word.count;
      }
    }
    std::pair<int32_t, int32_t> best;
    int64_t most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) {
        most = count;
        best = pair;
      }
    }
    if (most < 2) break;
    const std::string right = e.names[static_cast<size_t>(best.second)];
    const std::string name = e.names[static_cast<size_t>(best.first)] +
                             (right.starts_with(prefix) ? right.substr(prefix.size()) : right);
    auto found = std::find(e.names.begin(), e.names.end(), name);
    const auto id = static_cast<int32_t>(found - e.names.begin());
    if (found == e.names.end()) e.names.push_back(name);
    merges.push_back({best.first, best.second, id});
    for (TrainingWord& word : e.words) {
      std::vector<int32_t> symbols;
      for (size_t i = 0; i < word.symbols.size(); ++i) {
        const bool here = i + 1 < word.symbols.size() && word.symbols[i] == best.first &&
                          word.symbols[i + 1] == best.second;
        symbols.push_back(here ? id : word.symbols[i]);
        i += here;
      }
      word.symbols = symbols;
    }
  }
  return merges;
}

TEST(PairMerges, EqualsRecountingAfterEachMerge) {
  uint64_t state = 7;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 40; ++round) {
    std::vector<std::pair<std::string, int64_t>> words;
    for (int i = 0; i < 60; ++i) {
      std::string word;
      for (uint64_t n = 1 + random(12); n > 0; --n) word += static_cast<char>('a' + random(3));
      words.emplace_back(word, 1 + static_cast<int64_t>(random(5)));
    }
    const std::string prefix = round % 2 == 0 ? "" : "##";
    Example e = example(words, prefix);
    const Example same = e;
    const size_t symbols = e.names.size() + 80;
    PairMergesOptions options;
    options.symbols = static_cast<int64_t>(symbols);
    options.continuing_prefix = prefix;
    const auto merges = learn_merges(e.words, e.names, options);
    EXPECT_EQ(shown(merges, e.names), shown(slow_merges(same, symbols, prefix), e.names))
        << "round " << round;
  }
}

TEST(PairMerges, StopsWhenNoPairIsLeft) {
  Example e = example({{"abab", 2}, {"c", 9}});
  const auto merges = learn_merges(e.words, e.names, {.symbols = 100, .continuing_prefix = {}});
  EXPECT_EQ(shown(merges, e.names), "a+b=ab ab+ab=abab ");
}

}  // namespace
}  // namespace heed
