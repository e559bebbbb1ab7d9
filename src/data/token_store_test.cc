#include "data/token_store.h"

#include <numeric>

#include "base/file_testing.h"
#include "base/philox.h"

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

TEST_F(TokenStoreTest, HoldsWhatWasAdded) {
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

TEST_F(TokenStoreTest, GivesAnyPartOfTheStream) {
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

TEST_F(TokenStoreTest, IsNothingWhenMadeFromSomethingElse) {
  store_of(path("a.tokens"), some_examples(10));
  EXPECT_FALSE(TokenStore::open(path("a.tokens"), kFingerprint + 1));
  EXPECT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint));
  EXPECT_FALSE(TokenStore::open(folder_, kFingerprint));
}

TEST_F(TokenStoreTest, IsNothingWhenAnyByteDiffers) {
  store_of(path("a.tokens"), some_examples(4));
  const std::string good = read_text(path("a.tokens"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write("b.tokens", bad);
    ASSERT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint)) << "byte " << i;
  }
}

TEST_F(TokenStoreTest, IsNothingWhenCutShort) {
  store_of(path("a.tokens"), some_examples(4));
  const std::string good = read_text(path("a.tokens"));
  for (size_t size = 0; size < good.size(); size += 7) {
    write("b.tokens", std::string_view(good).substr(0, size));
    ASSERT_FALSE(TokenStore::open(path("b.tokens"), kFingerprint)) << size << " bytes";
  }
}

TEST_F(TokenStoreTest, LeavesNothingWhenNotFinished) {
  {
    TokenStoreWriter writer(path("a.tokens"), kFingerprint);
    writer.add(std::vector<int32_t>{1}, {});
  }
  EXPECT_THAT(file_names(), IsEmpty());
}

}  // namespace
}  // namespace heed
