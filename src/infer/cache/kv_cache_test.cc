#include "infer/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/philox.h"
#include "heed/error.h"

namespace heed {
namespace {

using kernels::kKvBlock;
using Tokens = std::vector<int32_t>;

KvLayout layout_of(std::vector<KvLayout::Group> groups) {
  KvLayout layout{.kv_heads = 1,
                  .head_dim = 2,
                  .layers_per_block = 1,
                  .groups = std::move(groups),
                  .self = {},
                  .cross = {}};
  for (int g = 0; g < static_cast<int>(layout.groups.size()); ++g) {
    const bool cross = layout.groups[static_cast<size_t>(g)].cross;
    (cross ? layout.cross : layout.self).push_back({.group = g, .layer = 0});
  }
  return layout;
}

KvCacheOptions blocks(const KvLayout& layout, int64_t count) {
  return {.memory_bytes = static_cast<uint64_t>(count * layout.block_floats()) * sizeof(float)};
}

Tokens count_up(int64_t n) {
  Tokens tokens(static_cast<size_t>(n));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  return tokens;
}

// A cache together with what its sequences should hold, kept in the plainest way: each its own
// text. A position's "key" is a number that depends on the whole text up to it.
class Checked {
 public:
  Checked(const KvLayout& layout, int64_t count) : cache(layout, blocks(layout, count)) {}

  KvCache::Sequence open() { return add(cache.open(), {}, 0); }
  KvCache::Sequence fork(KvCache::Sequence s) {
    return add(cache.fork(s), texts.at(s), sources.at(s));
  }
  void release(KvCache::Sequence s) {
    cache.release(s);
    texts.erase(s), sources.erase(s);
  }
  bool add_source(KvCache::Sequence s, int64_t rows) {
    if (!cache.add_source(s, rows)) return false;
    sources[s] = rows;
    for (int64_t i = 0; i < rows; ++i)
      each_key(s, true, i, [&](float& key) { key = source_key(rows, i); });
    return true;
  }
  bool extend(KvCache::Sequence s, const Tokens& tokens) {
    if (!cache.extend(s, static_cast<int64_t>(tokens.size()))) return false;
    Tokens& text = texts.at(s);
    for (const int32_t token : tokens) {
      text.push_back(token);
      const auto at = static_cast<int64_t>(text.size()) - 1;
      each_key(s, false, at, [&](float& key) { key = key_of(text, at); });
    }
    return true;
  }
  int64_t adopt(KvCache::Sequence s, const Tokens& tokens) {
    const int64_t known = cache.adopt(s, tokens);
    texts.at(s).assign(tokens.begin(), tokens.begin() + known);
    return known;
  }

  // Every position that is kept holds its key, in keys and values, and no position that the next
  // query looks at is missing; the counts are
  // those of the blocks that the tables name.
  void check() {
    std::set<int32_t> named;
    for (const auto& entry : texts) {
      const KvCache::Sequence s = entry.first;
      const Tokens& text = entry.second;
      ASSERT_EQ(cache.length(s), static_cast<int64_t>(text.size()));
      for (int64_t i = 0; i < cache.length(s); ++i) {
        each_key(s, false, i,
                 [&](float& key) { ASSERT_EQ(key, key_of(text, i)) << s << " at " << i; });
      }
      for (int64_t i = 0; i < sources.at(s); ++i) {
        each_key(s, true, i, [&](float& key) { ASSERT_EQ(key, source_key(sources.at(s), i)); });
      }
      std::vector<KvTable> tables;
      for (const KvTable& table : cache.view({&s, 1}, tables).tables) {
        const int64_t end = (table.keys + kKvBlock - 1) / kKvBlock;
        named.insert(table.blocks, table.blocks + (end - table.first_block));
      }
    }
    ASSERT_EQ(cache.used_blocks(), static_cast<int64_t>(named.size()));
  }

  KvCache cache;
  std::map<KvCache::Sequence, Tokens> texts;
  std::map<KvCache::Sequence, int64_t> sources;

 private:
  KvCache::Sequence add(KvCache::Sequence s, Tokens text, int64_t source) {
    EXPECT_TRUE(texts.emplace(s, std::move(text)).second) << "an id that is in use";
    sources[s] = source;
    return s;
  }
  float key_of(const Tokens& text, int64_t at) {
    const auto number = static_cast<float>(1 + keys_.size());
    return keys_.try_emplace(Tokens(text.begin(), text.begin() + at + 1), number).first->second;
  }
  static float source_key(int64_t rows, int64_t at) {
    return -static_cast<float>(rows * 1000 + at);
  }

  // Calls body(number) for a position's numbers in all groups that keep it.
  template <class Body>
  void each_key(KvCache::Sequence s, bool cross, int64_t position, const Body& body) {
    std::vector<KvTable> tables;
    const KvView view = cache.view({&s, 1}, tables);
    for (const KvLayout::Place& place : cross ? view.layout->cross : view.layout->self) {
      const int64_t window = view.layout->groups[static_cast<size_t>(place.group)].window;
      const KvBlocks blocks = view.layer(place);
      const KvTable& table = blocks.tables[0];
      if (position / kKvBlock < table.first_block) {
        ASSERT_TRUE(window > 0 && position + window <= cache.length(s)) << "given back too early";
        continue;
      }
      body(blocks.keys(table, position, 0)[position % kKvBlock]);
      body(blocks.values(table, position, 0)[position % kKvBlock * 2]);
    }
  }

  std::map<Tokens, float> keys_;
};

TEST(KvCache, MemoryIsWhatItWasGiven) {
  const KvLayout layout = layout_of({{}});
  EXPECT_EQ(KvCache(layout, blocks(layout, 5)).blocks(), 5);
  EXPECT_EQ(KvCache(layout, {.memory_bytes = blocks(layout, 5).memory_bytes - 1}).blocks(), 4);
  EXPECT_THROW(KvCache(layout, {.memory_bytes = 100}), Error);
}

TEST(KvCache, AForkSharesUntilItWritesAndCopiesOneBlock) {
  const KvLayout layout = layout_of({{}});
  Checked c(layout, 20);
  const auto a = c.open();
  ASSERT_TRUE(c.extend(a, count_up(40)));  // 3 blocks, the last one half full
  const auto b = c.fork(a);
  EXPECT_EQ(c.cache.used_blocks(), 3);
  EXPECT_EQ(c.cache.blocks_to_extend(b, 1), 1);
  ASSERT_TRUE(c.extend(b, {100}));
  EXPECT_EQ(c.cache.used_blocks(), 4);
  EXPECT_EQ(c.cache.blocks_to_extend(a, 1), 0);  // the other one now has its block to itself
  ASSERT_TRUE(c.extend(a, {200}));
  EXPECT_EQ(c.cache.used_blocks(), 4);
  c.check();
  c.release(a);
  EXPECT_EQ(c.cache.used_blocks(), 3);
  c.check();
}

TEST(KvCache, AFullLastBlockIsNotCopied) {
  const KvLayout layout = layout_of({{}});
  Checked c(layout, 20);
  const auto a = c.open();
  ASSERT_TRUE(c.extend(a, count_up(32)));
  const auto b = c.fork(a);
  ASSERT_TRUE(c.extend(b, {1}));
  ASSERT_TRUE(c.extend(a, {2}));
  EXPECT_EQ(c.cache.used_blocks(), 4);
  c.check();
}

TEST(KvCache, NoRoomIsAnAnswerThatChangesNothing) {
  const KvLayout layout = layout_of({{}, {.window = 4}});
  Checked c(layout, 4);
  const auto a = c.open();
  ASSERT_TRUE(c.extend(a, count_up(16)));
  EXPECT_FALSE(c.extend(a, count_up(17)));  // two more blocks in each group
  c.check();
  ASSERT_TRUE(c.extend(a, count_up(16)));
  c.check();
}

TEST(KvCache, AWindowHoldsOnlyWhatItReaches) {
  const KvLayout layout = layout_of({{.window = 40}});
  Checked c(layout, 100);
  const auto a = c.open();
  for (int32_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(c.extend(a, {i}));
    ASSERT_LE(c.cache.used_blocks(), c.cache.blocks_at_most(i + 1, 1, 0));
  }
  EXPECT_EQ(c.cache.blocks_at_most(500, 1, 0), 4);  // 40 positions that begin anywhere in a block
  c.check();
}

TEST(KvCache, LocalLayersGiveBackWhatGlobalLayersKeep) {
  const KvLayout layout = layout_of({{.window = 16}, {}});
  Checked c(layout, 100);
  const auto a = c.open();
  for (int32_t i = 0; i < 160; ++i) ASSERT_TRUE(c.extend(a, {i}));
  c.check();
  EXPECT_LE(c.cache.used_blocks(), 10 + 2);
}

TEST(KvCache, BeamsShareTheirSource) {
  const KvLayout layout = layout_of({{}, {.cross = true}});
  Checked c(layout, 100);
  const auto a = c.open();
  ASSERT_TRUE(c.add_source(a, 33));
  const auto b = c.fork(a), d = c.fork(b);
  ASSERT_TRUE(c.extend(a, {1}) && c.extend(b, {2}) && c.extend(d, {3}));
  EXPECT_EQ(c.cache.used_blocks(), 3 + 3);
  EXPECT_EQ(c.cache.source_rows(d), 33);
  c.release(a);
  c.check();
  EXPECT_FALSE(c.add_source(c.open(), 16 * 100));
}

TEST(KvCache, ARequestBeginsWithWhatAnotherHasComputed) {
  const KvLayout layout = layout_of({{}});
  Checked c(layout, 100);
  const auto a = c.open();
  const Tokens prompt = count_up(40);
  EXPECT_EQ(c.adopt(a, prompt), 0);
  ASSERT_TRUE(c.extend(a, prompt));
  c.cache.publish(a, prompt);

  Tokens other = prompt;
  other[35] = 999;  // differs in the third block
  const auto b = c.open();
  EXPECT_EQ(c.adopt(b, other), 32);
  EXPECT_EQ(c.cache.used_blocks(), 3);
  ASSERT_TRUE(c.extend(b, Tokens(other.begin() + 32, other.end())));
  c.check();

  Tokens third = prompt;
  third[3] = 999;  // differs at once, though the second block's tokens are the same
  EXPECT_EQ(c.adopt(c.open(), third), 0);
  // A prompt that is known entirely still leaves its last token to run.
  EXPECT_EQ(c.adopt(c.open(), count_up(32)), 16);

  // Also after the first request's end.
  c.release(a), c.release(b);
  const auto d = c.open();
  EXPECT_EQ(c.adopt(d, prompt), 32);
  c.check();
}

TEST(KvCache, TwoThatComputedTheSameKeepOneOfThem) {
  const KvLayout layout = layout_of({{}});
  Checked c(layout, 100);
  const auto a = c.open(), b = c.open();
  ASSERT_TRUE(c.extend(a, count_up(33)) && c.extend(b, count_up(33)));
  EXPECT_EQ(c.cache.used_blocks(), 6);
  c.cache.publish(a, count_up(33));
  c.cache.publish(b, count_up(33));
  EXPECT_EQ(c.cache.used_blocks(), 4);
  c.check();
}

TEST(KvCache, PublishedBlocksMakeRoomOldestFirst) {
  const KvLayout layout = layout_of({{}});
  Checked c(layout, 6);
  const auto put = [&](int32_t first) {
    Tokens text = count_up(33);
    text[0] = first;
    const auto s = c.open();
    ASSERT_TRUE(c.extend(s, text));
    c.cache.publish(s, text);
    c.release(s);
  };
  const auto known = [&](int32_t first) {
    Tokens text = count_up(33);
    text[0] = first;
    const auto s = c.open();
    const int64_t found = c.adopt(s, text);
    c.release(s);
    return found;
  };
  put(100), put(200);
  EXPECT_EQ(c.cache.available_blocks(), 6);
  EXPECT_EQ(known(100), 32);  // and used more recently than 200
  put(300);                   // needs 3 blocks, 2 are free
  EXPECT_EQ(known(100), 32);
  EXPECT_EQ(known(200), 16);  // the end of the text went first
  EXPECT_EQ(known(300), 32);
  EXPECT_EQ(c.cache.available_blocks(), 6);
}

TEST(KvCache, AWindowAdoptsOnlyWhatItReaches) {
  const KvLayout layout = layout_of({{.window = 20}, {}});
  Checked c(layout, 100);
  const Tokens prompt = count_up(100);
  const auto a = c.open();
  for (int64_t at = 0; at < 100; at += 10) {  // chunk by chunk, as windows ask for
    ASSERT_TRUE(c.extend(a, Tokens(prompt.begin() + at, prompt.begin() + at + 10)));
    c.cache.publish(a, prompt);
  }
  const auto b = c.open();
  EXPECT_EQ(c.adopt(b, prompt), 96);
  c.check();
  ASSERT_TRUE(c.extend(b, Tokens(prompt.begin() + 96, prompt.end())));
  c.check();
}

// Random calls against the plain reference; in the end nothing may be lost.
class KvCacheModelCheck : public testing::TestWithParam<std::vector<KvLayout::Group>> {};

TEST_P(KvCacheModelCheck, RandomCallsAgreeWithAPlainReference) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KvLayout layout = layout_of(GetParam());
    Checked c(layout, 8 * static_cast<int64_t>(layout.groups.size()));
    Random random({.seed = seed});
    const auto some_text = [&](uint64_t longest) {
      Tokens text(1 + random.below(longest));
      // Mostly the same tokens, so that beginnings agree.
      for (int32_t& token : text) token = random.below(30) == 0 ? 1 : 0;
      return text;
    };
    const auto any = [&] {
      auto it = c.texts.begin();
      std::advance(it, static_cast<ptrdiff_t>(random.below(c.texts.size())));
      return it->first;
    };
    int refused = 0, adopted = 0, forked = 0;
    for (int call = 0; call < 1500; ++call) {
      const uint64_t what = random.below(100);
      if (c.texts.empty() || (what < 10 && c.texts.size() < 12)) {
        const auto s = c.open();
        if (!layout.cross.empty())
          refused += !c.add_source(s, 1 + static_cast<int64_t>(random.below(40)));
        adopted += c.adopt(s, some_text(80)) > 0;
      } else if (what < 25 && c.texts.size() < 12) {
        c.fork(any()), ++forked;
      } else if (what < 40) {
        c.release(any());
      } else if (what < 55) {
        const auto s = any();
        Tokens known = c.texts.at(s);
        known.resize(random.below(known.size() + 1));
        c.cache.publish(s, known);
      } else {
        refused += !c.extend(any(), some_text(what < 60 ? 40 : 3));
      }
      if (call % 10 == 0) c.check();
      if (HasFatalFailure()) return;
    }
    // The run has been where it should.
    EXPECT_GT(refused, 0);
    EXPECT_GT(forked, 0);
    EXPECT_EQ(adopted > 0, layout.cross.empty());
    while (!c.texts.empty()) c.release(c.texts.begin()->first);
    EXPECT_EQ(c.cache.available_blocks(), c.cache.blocks());
    const auto all = c.open();  // every block can really be taken
    const auto self = static_cast<int64_t>(layout.self.size());
    ASSERT_TRUE(c.extend(all, Tokens(static_cast<size_t>(c.cache.blocks() / self * kKvBlock))));
    c.check();
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, KvCacheModelCheck,
                         testing::Values(std::vector<KvLayout::Group>{{}},
                                         std::vector<KvLayout::Group>{{.window = 21}},
                                         std::vector<KvLayout::Group>{{.window = 5}, {}},
                                         std::vector<KvLayout::Group>{{}, {.cross = true}}));

}  // namespace
}  // namespace heed
