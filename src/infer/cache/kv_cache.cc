#include "infer/cache/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "heed/error.h"

namespace heed {
namespace {

using kernels::kKvBlock;

int64_t blocks_of(int64_t positions) { return (positions + kKvBlock - 1) / kKvBlock; }

// The first block that the query at `position` and later ones attend to.
int64_t first_needed(const KvLayout::Group& group, int64_t position) {
  if (group.window == 0) return 0;
  return std::max<int64_t>(position - group.window + 1, 0) / kKvBlock;
}

int64_t block_count(const KvLayout& layout, const KvCacheOptions& options) {
  const uint64_t bytes = static_cast<uint64_t>(layout.block_floats()) * sizeof(float);
  const uint64_t least = layout.groups.size() * bytes;
  if (options.memory_bytes < least) {
    throw Error(ErrorCode::invalid_argument,
                "the KV cache of this model must have at least " + std::to_string(least) +
                    " bytes, got " + std::to_string(options.memory_bytes),
                "increase the KV cache memory");
  }
  // Block ids have 32 bits.
  return static_cast<int64_t>(std::min<uint64_t>(options.memory_bytes / bytes, INT32_MAX));
}

}  // namespace

KvCache::KvCache(const KvLayout& layout, const KvCacheOptions& options)
    : layout_(layout),
      memory_(static_cast<size_t>(block_count(layout, options) * layout.block_floats()) *
              sizeof(float)),
      data_(memory_.allocate<float>(
          static_cast<size_t>(block_count(layout, options) * layout.block_floats()))),
      references_(static_cast<size_t>(block_count(layout, options))),
      prefixes_(blocks(), kKvBlock, layout.groups.size()),
      has_source_(!layout.cross.empty()) {
  free_.reserve(references_.size());  // address space only, until blocks are released
}

KvCache::Entry& KvCache::at(Sequence sequence) {
  return const_cast<Entry&>(static_cast<const KvCache&>(*this).at(sequence));
}
const KvCache::Entry& KvCache::at(Sequence sequence) const {
  const auto index = static_cast<size_t>(sequence);
  HEED_CHECK(sequence >= 0 && index < entries_.size() && entries_[index].open,
             "KV cache: the sequence must be open");
  return entries_[index];
}

int32_t KvCache::take() {
  if (free_.empty() && fresh_ == blocks()) evict(prefixes_.oldest_idle());
  int32_t block;
  if (free_.empty()) {
    block = static_cast<int32_t>(fresh_++);
  } else {
    block = free_.back(), free_.pop_back();
  }
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void KvCache::add_reference(int32_t block) {
  int32_t& count = references_[static_cast<size_t>(block)];
  if (count == 1 && prefixes_.holder(block) != PrefixIndex::kRoot) prefixes_.set_idle(block, false);
  ++count;
}

void KvCache::drop_reference(int32_t block) {
  int32_t& count = references_[static_cast<size_t>(block)];
  HEED_DCHECK(count > 0, "KV cache: a block must be released once");
  if (--count == 0) {
    free_.push_back(block);
  } else if (count == 1 && prefixes_.holder(block) != PrefixIndex::kRoot) {
    prefixes_.set_idle(block, true);
  }
}

KvCache::Sequence KvCache::open() {
  Sequence sequence;
  if (closed_.empty()) {
    sequence = static_cast<Sequence>(entries_.size());
    entries_.emplace_back().tables.resize(layout_.groups.size());
  } else {
    sequence = closed_.back(), closed_.pop_back();
  }
  entries_[static_cast<size_t>(sequence)].open = true;
  return sequence;
}

KvCache::Sequence KvCache::fork(Sequence sequence) {
  at(sequence);  // is open
  const Sequence copy = open();
  const Entry& from = at(sequence);
  Entry& to = at(copy);
  to.length = from.length, to.source_rows = from.source_rows;
  for (size_t g = 0; g < from.tables.size(); ++g) {
    to.tables[g].blocks.assign(from.tables[g].blocks.begin(), from.tables[g].blocks.end());
    to.tables[g].first_block = from.tables[g].first_block;
    for (const int32_t block : to.tables[g].blocks) add_reference(block);
  }
  return copy;
}

void KvCache::release(Sequence sequence) {
  Entry& entry = at(sequence);
  for (Table& table : entry.tables) {
    for (const int32_t block : table.blocks) drop_reference(block);
    table.blocks.clear();
    table.first_block = 0;
  }
  entry.length = entry.source_rows = 0;
  entry.open = false;
  closed_.push_back(sequence);
}

bool KvCache::add_source(Sequence sequence, int64_t rows) {
  Entry& entry = at(sequence);
  HEED_CHECK(has_source_ && entry.source_rows == 0 && rows >= 0,
             "KV cache: add_source must be called once, for a model with a source");
  int64_t needed = 0;
  for (const KvLayout::Group& group : layout_.groups) needed += group.cross ? blocks_of(rows) : 0;
  if (needed > available_blocks()) return false;
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    if (!layout_.groups[g].cross) continue;
    for (int64_t i = 0; i < blocks_of(rows); ++i) entry.tables[g].blocks.push_back(take());
  }
  entry.source_rows = rows;
  return true;
}

// Whether the next positions are in a shared block (copy-on-write).
bool KvCache::must_copy(const Table& table, int64_t length) const {
  return length % kKvBlock != 0 && references_[static_cast<size_t>(table.blocks.back())] > 1;
}

int64_t KvCache::blocks_to_extend(Sequence sequence, int64_t rows) const {
  const Entry& entry = at(sequence);
  const int64_t more = blocks_of(entry.length + rows) - blocks_of(entry.length);
  int64_t needed = 0;
  for (size_t g = 0; rows > 0 && g < layout_.groups.size(); ++g) {
    if (layout_.groups[g].cross) continue;
    needed += more + (must_copy(entry.tables[g], entry.length) ? 1 : 0);
  }
  return needed;
}

int64_t KvCache::blocks_at_most(int64_t length, int64_t rows, int64_t source_rows) const {
  int64_t needed = 0;
  for (const KvLayout::Group& group : layout_.groups) {
    if (group.cross) {
      needed += blocks_of(source_rows);
    } else if (group.window == 0) {
      needed += blocks_of(length);
    } else {  // the window may begin at the end of a block
      needed += std::min(blocks_of(length), blocks_of(group.window - 1 + rows + kKvBlock - 1));
    }
  }
  return needed;
}

// Releases the blocks that no later query attends to.
void KvCache::trim(Entry& entry) {
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    if (layout_.groups[g].cross) continue;
    Table& table = entry.tables[g];
    const int64_t gone = std::min(first_needed(layout_.groups[g], entry.length) - table.first_block,
                                  static_cast<int64_t>(table.blocks.size()));
    if (gone <= 0) continue;
    for (int64_t i = 0; i < gone; ++i) drop_reference(table.blocks[static_cast<size_t>(i)]);
    table.blocks.erase(table.blocks.begin(), table.blocks.begin() + gone);
    table.first_block += gone;
  }
}

bool KvCache::extend(Sequence sequence, int64_t rows) {
  HEED_CHECK(rows >= 0, "KV cache: rows must not be negative");
  Entry& entry = at(sequence);
  trim(entry);
  if (blocks_to_extend(sequence, rows) > available_blocks()) return false;
  if (rows == 0) return true;
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    if (layout_.groups[g].cross) continue;
    Table& table = entry.tables[g];
    if (must_copy(table, entry.length)) {
      const int32_t own = take();
      std::memcpy(block_data(own), block_data(table.blocks.back()), block_bytes());
      drop_reference(table.blocks.back());
      table.blocks.back() = own;
    }
    const int64_t end = blocks_of(entry.length + rows) - table.first_block;
    while (static_cast<int64_t>(table.blocks.size()) < end) table.blocks.push_back(take());
  }
  entry.length += rows;
  return true;
}

int64_t KvCache::adopt(Sequence sequence, std::span<const int32_t> tokens) {
  Entry& entry = at(sequence);
  HEED_CHECK(entry.length == 0, "KV cache: a sequence that adopts must be empty");
  if (has_source_ || tokens.empty()) return 0;
  path_.clear();
  PrefixIndex::Node node = PrefixIndex::kRoot;
  for (size_t at = 0; at + kKvBlock < tokens.size(); at += kKvBlock) {
    const auto child = prefixes_.find(node, tokens.subspan(at, kKvBlock));
    if (!child) break;
    path_.push_back(node = *child);
  }
  // All blocks that the next query attends to must still exist.
  const auto complete = [&](int64_t count) {
    for (size_t g = 0; g < layout_.groups.size(); ++g) {
      for (int64_t i = first_needed(layout_.groups[g], count * kKvBlock); i < count; ++i) {
        if (prefixes_.blocks(path_[static_cast<size_t>(i)])[g] == PrefixIndex::kNoBlock) {
          return false;
        }
      }
    }
    return true;
  };
  auto count = static_cast<int64_t>(path_.size());
  while (!complete(count)) --count;
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    Table& table = entry.tables[g];
    table.first_block = first_needed(layout_.groups[g], count * kKvBlock);
    for (int64_t i = table.first_block; i < count; ++i) {
      table.blocks.push_back(prefixes_.blocks(path_[static_cast<size_t>(i)])[g]);
      add_reference(table.blocks.back());
    }
  }
  touch_path();
  entry.length = count * kKvBlock;
  return entry.length;
}

void KvCache::publish(Sequence sequence, std::span<const int32_t> tokens) {
  Entry& entry = at(sequence);
  if (has_source_) return;
  const int64_t count = std::min(static_cast<int64_t>(tokens.size()), entry.length) / kKvBlock;
  path_.clear();
  PrefixIndex::Node node = PrefixIndex::kRoot;
  for (int64_t i = 0; i < count; ++i) {
    const auto own = [&](const Table& table) { return i >= table.first_block; };
    const auto piece = tokens.subspan(static_cast<size_t>(i * kKvBlock), kKvBlock);
    if (const auto child = prefixes_.find(node, piece)) {
      node = *child;
    } else if (std::any_of(entry.tables.begin(), entry.tables.end(), own)) {
      node = prefixes_.add(node, piece);
    } else {
      break;  // the window has released all earlier blocks
    }
    path_.push_back(node);
    for (size_t g = 0; g < entry.tables.size(); ++g) {
      Table& table = entry.tables[g];
      if (own(table)) share(node, g, table.blocks[static_cast<size_t>(i - table.first_block)]);
    }
  }
  touch_path();
}

// Makes a table and a node share one block: the node's, or else the table's.
void KvCache::share(PrefixIndex::Node node, size_t group, int32_t& block) {
  const int32_t known = prefixes_.blocks(node)[group];
  if (known == block) return;
  if (known != PrefixIndex::kNoBlock) {
    add_reference(known);
    drop_reference(block);
    block = known;
    return;
  }
  // Another holder is unreachable: its parent was evicted.
  if (prefixes_.holder(block) != PrefixIndex::kRoot) evict(prefixes_.holder(block));
  prefixes_.hold(node, group, block);
  ++references_[static_cast<size_t>(block)];
}

// Marks the path as used, its beginning last: suffixes are evicted before their prefixes.
void KvCache::touch_path() {
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) prefixes_.touch(*node);
}

void KvCache::evict(PrefixIndex::Node node) {
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    const int32_t block = prefixes_.blocks(node)[g];
    if (block == PrefixIndex::kNoBlock) continue;
    if (references_[static_cast<size_t>(block)] == 1) prefixes_.set_idle(block, false);
    prefixes_.let_go(node, g);
    drop_reference(block);
  }
  prefixes_.remove(node);
}

KvView KvCache::view(std::span<const Sequence> sequences, std::vector<KvTable>& tables) const {
  tables.clear();
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    for (const Sequence sequence : sequences) {
      const Entry& entry = at(sequence);
      const Table& table = entry.tables[g];
      tables.push_back({.blocks = table.blocks.data(),
                        .first_block = table.first_block,
                        .keys = layout_.groups[g].cross ? entry.source_rows : entry.length});
    }
  }
  return {.layout = &layout_, .data = data_, .tables = tables};
}

}  // namespace heed
