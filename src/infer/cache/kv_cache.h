// KvCache: the one owner of keys and values between the steps of decoding.
//
// Its memory is cut into blocks of kKvBlock positions (model/kv_layout.h). A sequence has tables of
// blocks; sequences share blocks wherever their contents are the same: beams share all that they
// have in common, all beams of a sentence its source, and requests a common beginning of their
// prompts. A block that is written to while others share it is copied first; only a sequence's last
// block is ever written to.
//
//   KvCache cache(transformer.kv_layout(), {.memory_bytes = 1 << 30});
//   const KvCache::Sequence s = cache.open();
//   const int64_t known = cache.adopt(s, prompt);            // what another request has computed
//   DecodeBatch step(cache);                                 // infer/engine/decode_batch.h
//   if (!step.add(s, prompt.subspan(known))) …               // no memory now: wait
//   Var hidden = transformer.decode(ctx, step.batch(), step.view());
//   cache.publish(s, prompt);                                // others may adopt it
//   const KvCache::Sequence beam = cache.fork(s);            // shares everything, to go its own
//   way cache.release(s), cache.release(beam);
//
// An encoder-decoder model's source comes first:
//
//   cache.add_source(s, source_rows);
//   transformer.cache_source(ctx, source, cache.view({&s, 1}, tables));
//   // Forks of s are its beams: they share the source.
//
// A "no" for lack of blocks is an ordinary answer and changes nothing. Blocks that only the prefix
// index holds (publish) are given up, least recently used first, when a sequence needs them.
// Not thread-safe: the scheduler's. What happens depends on the calls alone. Once its tables
// have grown to what the work needs, it allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "infer/cache/prefix_index.h"
#include "model/kv_layout.h"

namespace heed {

struct KvCacheOptions {
  uint64_t memory_bytes = uint64_t{1} << 30;  // of the blocks; pages cost memory when first used
};

class KvCache {
 public:
  using Sequence = int32_t;

  // Borrows the layout. Throws invalid_argument when the memory does not hold even one position.
  KvCache(const KvLayout& layout, const KvCacheOptions& options);

  // An empty sequence.
  Sequence open();
  // Another one with the same positions and source.
  Sequence fork(Sequence sequence);
  void release(Sequence sequence);

  // Room for the source's rows, once, before cache_source(). False: not enough blocks.
  [[nodiscard]] bool add_source(Sequence sequence, int64_t rows);
  // Room for the next `rows` positions, which a decode() must fill before anybody reads them. Gives
  // back what no window reaches any more. False: not enough blocks.
  [[nodiscard]] bool extend(Sequence sequence, int64_t rows);

  // Lets an empty sequence begin with blocks that others have published for the same tokens; how
  // many tokens that spares. At least the last token is left to run, because somebody wants its
  // logits. Always 0 where there is a source.
  int64_t adopt(Sequence sequence, std::span<const int32_t> tokens);
  // Says which tokens a sequence begins with, once the model has run them: their full blocks may be
  // adopted from now on, also after the sequence's end. Blocks that somebody else has published for
  // the same tokens replace the sequence's own, which are given back. With windows, call it after
  // each chunk of a prompt, while its blocks are still there.
  void publish(Sequence sequence, std::span<const int32_t> tokens);
  // Forgets all that was published.
  void forget_prefixes();

  int64_t length(Sequence sequence) const { return at(sequence).length; }
  int64_t source_rows(Sequence sequence) const { return at(sequence).source_rows; }

  // For one batch: the tables of its sequences, in order, in `tables`. Valid until one of them is
  // extended, published or released.
  KvView view(std::span<const Sequence> sequences, std::vector<KvTable>& tables) const;

  // How much there is. Blocks that only the prefix index holds are available too.
  int64_t blocks() const { return static_cast<int64_t>(references_.size()); }
  int64_t available_blocks() const { return blocks() - fresh_ + free_count() + prefixes_.idle(); }
  int64_t used_blocks() const { return blocks() - available_blocks(); }
  uint64_t block_bytes() const {
    return static_cast<uint64_t>(layout_.block_floats()) * sizeof(float);
  }
  // Blocks that extend(sequence, rows) would take, not counting what a window gives back first.
  int64_t blocks_to_extend(Sequence sequence, int64_t rows) const;
  // Blocks that a sequence alone holds at most when it has grown to `length` by at most `rows` at
  // once. A request that needs more than blocks() can never run.
  int64_t blocks_at_most(int64_t length, int64_t rows, int64_t source_rows) const;

 private:
  struct Table {
    std::vector<int32_t> blocks;
    int64_t first_block = 0;  // the position of blocks[0], in blocks
  };
  struct Entry {
    bool open = false;
    int64_t length = 0;
    int64_t source_rows = 0;
    std::vector<Table> tables;  // [groups]
  };

  Entry& at(Sequence sequence);
  const Entry& at(Sequence sequence) const;
  int64_t free_count() const { return static_cast<int64_t>(free_.size()); }
  float* block_data(int32_t block) const { return data_ + block * layout_.block_floats(); }

  int32_t take();
  void add_reference(int32_t block);
  void drop_reference(int32_t block);
  void trim(Entry& entry);
  bool must_copy(const Table& table, int64_t length) const;
  void share(PrefixIndex::Node node, size_t group, int32_t& block);
  void touch_path();
  void evict(PrefixIndex::Node node);

  const KvLayout& layout_;
  Arena memory_;
  float* data_;
  std::vector<int32_t> references_;  // [blocks]: tables that name it, and 1 for the prefix index
  std::vector<int32_t> free_;        // given back; the last is taken first, its pages are warm
  int64_t fresh_ = 0;                // blocks from here on were never used
  std::vector<Entry> entries_;
  std::vector<Sequence> closed_;  // entries to use again
  PrefixIndex prefixes_;
  std::vector<PrefixIndex::Node> path_;  // of the text at hand
  bool has_source_;
};

}  // namespace heed
