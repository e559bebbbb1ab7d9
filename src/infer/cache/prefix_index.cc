#include "infer/cache/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace heed {
namespace {

constexpr size_t kMostBuckets = 1 << 16;

// Finalizer of splitmix64: every bit of x affects every bit of the result.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

PrefixIndex::PrefixIndex(int64_t blocks, int64_t block_tokens, size_t groups)
    : block_tokens_(static_cast<size_t>(block_tokens)),
      groups_(groups),
      buckets_(std::min(std::bit_ceil(static_cast<size_t>(blocks)), kMostBuckets), kRoot),
      holders_(static_cast<size_t>(blocks), kRoot) {}

std::span<int32_t> PrefixIndex::tokens_of(Node node) {
  return {tokens_.data() + static_cast<size_t>(node) * block_tokens_, block_tokens_};
}
std::span<const int32_t> PrefixIndex::tokens_of(Node node) const {
  return {tokens_.data() + static_cast<size_t>(node) * block_tokens_, block_tokens_};
}
std::span<const int32_t> PrefixIndex::blocks(Node node) const {
  return {blocks_.data() + static_cast<size_t>(node) * groups_, groups_};
}

size_t PrefixIndex::bucket(uint64_t parent_id, std::span<const int32_t> tokens) const {
  uint64_t hash = mix(parent_id);
  for (const int32_t token : tokens) hash = mix(hash ^ static_cast<uint32_t>(token));
  return hash & (buckets_.size() - 1);
}

std::optional<PrefixIndex::Node> PrefixIndex::find(Node parent,
                                                   std::span<const int32_t> tokens) const {
  const uint64_t parent_id = id_of(parent);
  for (Node node = buckets_[bucket(parent_id, tokens)]; node != kRoot;
       node = at(node).next_in_bucket) {
    if (at(node).parent_id == parent_id && std::ranges::equal(tokens_of(node), tokens)) return node;
  }
  return std::nullopt;
}

PrefixIndex::Node PrefixIndex::add(Node parent, std::span<const int32_t> tokens) {
  HEED_CHECK(tokens.size() == block_tokens_, "prefix index: tokens must be one block");
  Node node;
  if (removed_.empty()) {
    node = static_cast<Node>(entries_.size());
    entries_.emplace_back();
    tokens_.resize(tokens_.size() + block_tokens_);
    blocks_.resize(blocks_.size() + groups_, kNoBlock);
  } else {
    node = removed_.back(), removed_.pop_back();
  }
  Entry& entry = at(node);
  entry = Entry{.id = next_id_++, .parent_id = id_of(parent)};
  std::ranges::copy(tokens, tokens_of(node).begin());
  Node& head = buckets_[bucket(entry.parent_id, tokens)];
  entry.next_in_bucket = head;
  head = node;
  link_newest(node);
  return node;
}

void PrefixIndex::remove(Node node) {
  for (const int32_t block : blocks(node)) {
    HEED_CHECK(block == kNoBlock, "prefix index: a removed node must hold no block");
  }
  Node* link = &buckets_[bucket(at(node).parent_id, tokens_of(node))];
  while (*link != node) link = &at(*link).next_in_bucket;
  *link = at(node).next_in_bucket;
  unlink(node);
  removed_.push_back(node);
}

void PrefixIndex::hold(Node node, size_t group, int32_t block) {
  int32_t& slot = blocks_[static_cast<size_t>(node) * groups_ + group];
  HEED_CHECK(slot == kNoBlock && holder(block) == kRoot, "prefix index: a block must be held once");
  slot = block;
  holders_[static_cast<size_t>(block)] = node;
}

void PrefixIndex::let_go(Node node, size_t group) {
  int32_t& slot = blocks_[static_cast<size_t>(node) * groups_ + group];
  holders_[static_cast<size_t>(slot)] = kRoot;
  slot = kNoBlock;
}

void PrefixIndex::set_idle(int32_t block, bool idle) {
  const int32_t change = idle ? 1 : -1;
  at(holder(block)).idle += change;
  idle_ += change;
}

PrefixIndex::Node PrefixIndex::oldest_idle() const {
  for (Node node = oldest_; node != kRoot; node = at(node).newer) {
    if (at(node).idle > 0) return node;
  }
  HEED_CHECK(false, "prefix index: there must be an idle block");
  return kRoot;
}

void PrefixIndex::touch(Node node) {
  unlink(node);
  link_newest(node);
}

void PrefixIndex::unlink(Node node) {
  const Entry& entry = at(node);
  (entry.older == kRoot ? oldest_ : at(entry.older).newer) = entry.newer;
  (entry.newer == kRoot ? newest_ : at(entry.newer).older) = entry.older;
}

void PrefixIndex::link_newest(Node node) {
  Entry& entry = at(node);
  entry.older = newest_, entry.newer = kRoot;
  (newest_ == kRoot ? oldest_ : at(newest_).newer) = node;
  newest_ = node;
}

}  // namespace heed
