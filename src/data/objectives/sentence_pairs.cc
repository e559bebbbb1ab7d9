#include "data/objectives/sentence_pairs.h"

#include <algorithm>
#include <span>

#include "heed/error.h"

namespace heed {

namespace {

// One document's sentences.
class Sentences {
 public:
  Sentences(const TokenStore& store, int64_t example)
      : ids_(store.first(example)), starts_(store.second(example)) {}

  size_t size() const { return starts_.size() + 1; }
  std::span<const int32_t> operator[](size_t s) const {
    const auto begin = s == 0 ? 0 : static_cast<size_t>(starts_[s - 1]);
    const auto end = s < starts_.size() ? static_cast<size_t>(starts_[s]) : ids_.size();
    return ids_.subspan(begin, end - begin);
  }

 private:
  std::span<const int32_t> ids_, starts_;
};

void append(std::span<const int32_t> ids, std::vector<int32_t>& to) {
  to.insert(to.end(), ids.begin(), ids.end());
}

// Truncates the longer text at its start or end, at random, until both fit.
void shorten(SentencePair& pair, size_t tokens, Random& random) {
  size_t first_front = 0, second_front = 0;
  size_t first_size = pair.first.size(), second_size = pair.second.size();
  while (first_size + second_size > tokens) {
    const bool from_front = random.uniform() < 0.5f;
    if (first_size > second_size) {
      --first_size;
      first_front += from_front;
    } else {
      --second_size;
      second_front += from_front;
    }
  }
  const auto cut = [](std::vector<int32_t>& ids, size_t front, size_t size) {
    ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(front));
    ids.resize(size);
  };
  cut(pair.first, first_front, first_size);
  cut(pair.second, second_front, second_size);
}

}  // namespace

SentencePairs::SentencePairs(const TokenStore& store, const SentencePairOptions& options)
    : store_(store), options_(options) {
  if (store.examples() < 2) {
    throw Error(
        ErrorCode::invalid_argument,
        "sentence pairs must have at least two documents, got " + std::to_string(store.examples()),
        "put a blank line between documents and set unit = \"paragraph\"");
  }
  for (int64_t example = 0; example < store.examples(); ++example) {
    const Sentences sentences(store, example);
    uint32_t begin = 0;
    int64_t tokens = 0;
    for (uint32_t s = 0; s < sentences.size(); ++s) {
      tokens += std::ssize(sentences[s]);
      if (tokens < options.tokens && s + 1 < sentences.size()) continue;
      runs_.push_back({static_cast<uint32_t>(example), begin, s + 1 - begin});
      begin = s + 1;
      tokens = 0;
    }
  }
}

SentencePair SentencePairs::make(int64_t number, Random& random) const {
  const Run& run = runs_[static_cast<size_t>(number)];
  const Sentences sentences(store_, run.example);
  int64_t wanted = options_.tokens;
  if (wanted > 2 && random.uniform() < options_.short_share) {
    wanted = 2 + static_cast<int64_t>(random.below(static_cast<uint64_t>(wanted - 1)));
  }
  // As many of the run's sentences as reach the target length.
  uint32_t count = 0;
  for (int64_t tokens = 0; count < run.sentences && tokens < wanted; ++count) {
    tokens += std::ssize(sentences[run.sentence + count]);
  }
  const uint32_t in_first =
      count > 1 ? 1 + static_cast<uint32_t>(random.below(uint64_t{count} - 1)) : 1;
  SentencePair pair;
  pair.example = run.example;
  for (uint32_t s = 0; s < in_first; ++s) append(sentences[run.sentence + s], pair.first);
  pair.is_random = count == 1 || random.uniform() < options_.random_share;
  if (!pair.is_random) {
    for (uint32_t s = in_first; s < count; ++s) append(sentences[run.sentence + s], pair.second);
  } else {
    // A random other document, from a random sentence.
    auto other = static_cast<int64_t>(random.below(static_cast<uint64_t>(store_.examples() - 1)));
    if (other >= run.example) ++other;
    const Sentences others(store_, other);
    for (size_t s = random.below(others.size()); s < others.size(); ++s) {
      append(others[s], pair.second);
      if (std::ssize(pair.first) + std::ssize(pair.second) >= wanted) break;
    }
  }
  shorten(pair, static_cast<size_t>(options_.tokens), random);
  return pair;
}

}  // namespace heed
