// KvCache: the paged KV cache, the one owner of K and V between decode steps.
//
// Its memory is divided into blocks of kKvBlock positions (model/kv_layout.h). A sequence has block
// tables; sequences share blocks with the same content: beams share their common beginning, all
// beams of a sentence its source, and requests a common prefix of their prompts. A shared block is
// copied before it is written (copy-on-write); only the last block of a sequence is ever written.
//
//   KvCache cache(transformer.kv_layout(), {.memory_bytes = 1 << 30});
//   const KvCache::Sequence s = cache.open();
//   const int64_t known = cache.adopt(s, prompt);            // cached prefix of another request
//   DecodeBatch step(cache);                                 // infer/engine/decode_batch.h
//   if (!step.add(s, prompt.subspan(known))) …               // no blocks now: wait
//   Var hidden = transformer.decode(ctx, step.batch(), step.view());
//   cache.publish(s, prompt);                                // other requests may adopt it
//   const KvCache::Sequence beam = cache.fork(s);            // shares all blocks
//   cache.release(s), cache.release(beam);
//
// An encoder-decoder model's source is added first:
//
//   cache.add_source(s, source_rows);
//   transformer.cache_source(ctx, source, cache.view({&s, 1}, tables));
//   // Forks of s are its beams: they share the source.
//
// `false` for lack of blocks is an ordinary result and changes nothing. Blocks that only the prefix
// index holds (publish) are evicted, least recently used first, when a sequence needs them.
// Not thread-safe: it belongs to the scheduler. Once its tables have grown, it allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "infer/cache/prefix_index.h"
#include "model/kv_layout.h"

namespace heed {

struct KvCacheOptions {
  uint64_t memory_bytes = uint64_t{1} << 30;  // of the blocks; pages are mapped on first use
};

class KvCache {
 public:
  using Sequence = int32_t;

  // Borrows the layout. Throws invalid_argument if the memory holds less than one position.
  KvCache(const KvLayout& layout, const KvCacheOptions& options);

  // An empty sequence.
  Sequence open();
  // A copy that shares all blocks.
  Sequence fork(Sequence sequence);
  void release(Sequence sequence);

  // Blocks for the rows of the source, once, before cache_source(). False: not enough blocks.
  [[nodiscard]] bool add_source(Sequence sequence, int64_t rows);
  // Blocks for the next `rows` positions, which a decode() must fill before they are read. Releases
  // blocks that no attention window reaches any more. False: not enough blocks.
  [[nodiscard]] bool extend(Sequence sequence, int64_t rows);

  // Prefix caching: an empty sequence takes over published blocks of the same tokens. Returns how
  // many tokens that saves; never the last one, whose logits are needed. Always 0 with a source.
  int64_t adopt(Sequence sequence, std::span<const int32_t> tokens);
  // Publishes the full blocks of the tokens that a sequence begins with, after the model has run
  // them: they may be adopted from now on, also after release(). Blocks that are already published
  // for the same tokens replace the sequence's. With windows, call it after each chunk of a prompt,
  // before its blocks are released.
  void publish(Sequence sequence, std::span<const int32_t> tokens);

  int64_t length(Sequence sequence) const { return at(sequence).length; }
  int64_t source_rows(Sequence sequence) const { return at(sequence).source_rows; }

  // The tables of a batch's sequences, in order, stored in `tables`. Valid until one of them is
  // extended, published or released.
  KvView view(std::span<const Sequence> sequences, std::vector<KvTable>& tables) const;

  // Blocks that only the prefix index holds are available too.
  int64_t blocks() const { return static_cast<int64_t>(references_.size()); }
  int64_t available_blocks() const { return blocks() - fresh_ + free_count() + prefixes_.idle(); }
  int64_t used_blocks() const { return blocks() - available_blocks(); }
  uint64_t block_bytes() const {
    return static_cast<uint64_t>(layout_.block_floats()) * sizeof(float);
  }
  // Blocks that extend(sequence, rows) would take, without those that a window releases first.
  int64_t blocks_to_extend(Sequence sequence, int64_t rows) const;
  // Maximum number of blocks of a sequence of `length`, extended by at most `rows` at a time. A
  // request that needs more than blocks() can never run.
  int64_t blocks_at_most(int64_t length, int64_t rows, int64_t source_rows) const;

 private:
  struct Table {
    std::vector<int32_t> blocks;
    int64_t first_block = 0;  // index of blocks[0] in the sequence
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
  std::vector<int32_t> references_;  // [blocks]: tables with it, and 1 for the prefix index
  std::vector<int32_t> free_;        // released; the last is taken first, its pages are warm
  int64_t fresh_ = 0;                // blocks from here on were never used
  std::vector<Entry> entries_;
  std::vector<Sequence> closed_;  // entries to reuse
  PrefixIndex prefixes_;
  std::vector<PrefixIndex::Node> path_;  // of the current tokens
  bool has_source_;
};

}  // namespace heed
