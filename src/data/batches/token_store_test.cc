#include "data/batches/token_store.h"

#include <cstring>
#include <numeric>

#include "base/files/file_testing.h"
#include "base/philox.h"
#include "data/batches/hash.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr uint64_t kFingerprint = 42;

struct Example {
  std::vector<int32_t> first, second;
};

std::vector<Example> some_examples(int count) {
  Random random({.seed = 3});
  std::vector<Example> examples(static_cast<size_t>(count));
  for (Example& example : examples) {
    example.first.resize(random.below(9));
    example.second.resize(random.below(4));
    for (int32_t& id : example.first) id = static_cast<int32_t>(random.below(1000));
    for (int32_t& id : example.second) id = -static_cast<int32_t>(random.below(1000));
  }
  return examples;
}

TokenStore store_of(const std::string& path, const std::vector<Example>& examples) {
  TokenStoreWriter writer(path, kFingerprint);
  for (const Example& example : examples) writer.add(example.first, example.second);
  return writer.finish("some metadata");
}

void expect_holds(const TokenStore& store, const std::vector<Example>& examples) {
  ASSERT_EQ(store.examples(), std::ssize(examples));
  for (int64_t i = 0; i < store.examples(); ++i) {
    ASSERT_THAT(store.first(i), ElementsAreArray(examples[static_cast<size_t>(i)].first)) << i;
    ASSERT_THAT(store.second(i), ElementsAreArray(examples[static_cast<size_t>(i)].second)) << i;
  }
  EXPECT_EQ(store.metadata(), "some metadata");
}

using TokenStoreTest = FolderTest;

TEST_F(TokenStoreTest, RoundTripsExamples) {
  for (const int count : {0, 1, 1023, 1024, 1025, 5000}) {
    SCOPED_TRACE(count);
    const auto examples = some_examples(count);
    expect_holds(store_of("", examples), examples);
    expect_holds(store_of(path("a.tokens"), examples), examples);
    const auto again = TokenStore::open(path("a.tokens"), kFingerprint);
    ASSERT_TRUE(again);
    expect_holds(*again, examples);
  }
  EXPECT_THAT(file_names(), ElementsAre("a.tokens"));
}

TEST_F(TokenStoreTest, CopiesAnyPartOfTheStream) {
  const auto examples = some_examples(3000);
  const TokenStore store = store_of("", examples);
  std::vector<int32_t> stream;
  for (const Example& e : examples) stream.insert(stream.end(), e.first.begin(), e.first.end());
  ASSERT_EQ(store.first_tokens(), std::ssize(stream));
  Random random({.seed = 4});
  for (int round = 0; round < 500; ++round) {
    const size_t begin = random.below(stream.size());
    std::vector<int32_t> part(random.below(std::min<size_t>(200, stream.size() - begin) + 1));
    store.copy_stream(static_cast<int64_t>(begin), part);
    ASSERT_THAT(part, ElementsAreArray(stream.data() + begin, part.size())) << begin;
  }
}

TEST_F(TokenStoreTest, RejectsAnotherFingerprint) {
  store_of(path("a.tokens"), some_examples(10));
  EXPECT_FALSE(TokenStore::open(path("a.tokens"), kFingerprint + 1));
  EXPECT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint));
  EXPECT_FALSE(TokenStore::open(folder_, kFingerprint));
}

TEST_F(TokenStoreTest, RejectsAnyChangedByte) {
  store_of(path("a.tokens"), some_examples(4));
  const std::string good = read_text(path("a.tokens"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write("b.tokens", bad);
    ASSERT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint)) << "byte " << i;
  }
}

TEST_F(TokenStoreTest, RejectsTruncatedFiles) {
  store_of(path("a.tokens"), some_examples(4));
  const std::string good = read_text(path("a.tokens"));
  for (size_t size = 0; size < good.size(); size += 7) {
    write("b.tokens", std::string_view(good).substr(0, size));
    ASSERT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint)) << size << " bytes";
  }
}

// Malicious files have valid checksums.
TEST_F(TokenStoreTest, RejectsInconsistentFiles) {
  store_of(path("a.tokens"), some_examples(1500));
  const std::string good = read_text(path("a.tokens"));
  constexpr size_t kWord = sizeof(uint64_t), kTrailer = 8 * kWord, kEntry = 3 * kWord;
  const size_t trailer = good.size() - kTrailer;
  const auto word = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, good.data() + at, kWord);
    return value;
  };
  const size_t index = word(trailer + 4 * kWord);
  const auto expect_nothing = [&](const char* what, size_t at, uint64_t value) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, kWord);
    const std::string_view view(bad);
    const uint64_t tail = hash_text(view.substr(index, trailer - index));
    const uint64_t checksum = hash_text(view.substr(trailer, 6 * kWord), tail);
    std::memcpy(bad.data() + trailer + 6 * kWord, &checksum, kWord);
    write("b.tokens", bad);
    EXPECT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint)) << what;
  };
  expect_nothing("fewer examples", trailer + kWord, 1000);
  expect_nothing("more examples", trailer + kWord, 3000);
  expect_nothing("far more examples", trailer + kWord, ~uint64_t{0});
  expect_nothing("far more blocks", trailer + 2 * kWord, ~uint64_t{0});
  expect_nothing("more tokens", trailer + 3 * kWord, word(trailer + 3 * kWord) + 1);
  expect_nothing("tokens before the first block", index + 2 * kWord, 1);
  expect_nothing("tokens from one block to another", index + kEntry + 2 * kWord, 5);
}

TEST_F(TokenStoreTest, RemovesAnUnfinishedFile) {
  {
    TokenStoreWriter writer(path("a.tokens"), kFingerprint);
    writer.add(std::vector<int32_t>{1}, {});
  }
  EXPECT_THAT(file_names(), IsEmpty());
}

}  // namespace
}  // namespace heed
