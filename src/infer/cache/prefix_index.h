// Prefix caching: which KV blocks hold which prefixes of prompts.
//
// A tree: a node stands for one block of tokens after those of its parent, and has a KV block in
// each group of layers (none where a window has released it). Nodes are found by a hash of parent
// and tokens and compared token by token, so that a collision does no harm. Holds indices only: the
// cache counts references.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace heed {

class PrefixIndex {
 public:
  using Node = int32_t;
  static constexpr Node kRoot = -1;
  static constexpr int32_t kNoBlock = -1;

  // For up to `blocks` blocks of `block_tokens` tokens.
  PrefixIndex(int64_t blocks, int64_t block_tokens, size_t groups);

  // The child of `parent` with these tokens.
  std::optional<Node> find(Node parent, std::span<const int32_t> tokens) const;
  Node add(Node parent, std::span<const int32_t> tokens);
  // The node must hold no block. Its children become unreachable.
  void remove(Node node);

  // Blocks by group; kNoBlock: none.
  std::span<const int32_t> blocks(Node node) const;
  // The node that holds a block; kRoot: none does.
  Node holder(int32_t block) const { return holders_[static_cast<size_t>(block)]; }
  void hold(Node node, size_t group, int32_t block);
  void let_go(Node node, size_t group);

  // A held block that no sequence uses is idle; the cache sets that.
  void set_idle(int32_t block, bool idle);
  int64_t idle() const { return idle_; }
  // The least recently used node with an idle block. Exists while idle() > 0.
  Node oldest_idle() const;
  // Makes a node the most recently used one.
  void touch(Node node);

 private:
  struct Entry {
    uint64_t id = 0;         // unique, unlike the entry's index
    uint64_t parent_id = 0;  // 0: the root
    int32_t idle = 0;        // of its blocks
    Node next_in_bucket = kRoot;
    Node older = kRoot, newer = kRoot;  // by last use
  };

  Entry& at(Node node) { return entries_[static_cast<size_t>(node)]; }
  const Entry& at(Node node) const { return entries_[static_cast<size_t>(node)]; }
  uint64_t id_of(Node node) const { return node == kRoot ? 0 : at(node).id; }
  std::span<int32_t> tokens_of(Node node);
  std::span<const int32_t> tokens_of(Node node) const;
  size_t bucket(uint64_t parent_id, std::span<const int32_t> tokens) const;
  void unlink(Node node);
  void link_newest(Node node);

  size_t block_tokens_, groups_;
  std::vector<Entry> entries_;
  std::vector<int32_t> tokens_;  // [entries, block_tokens]
  std::vector<int32_t> blocks_;  // [entries, groups]
  std::vector<Node> removed_;    // entries to reuse
  std::vector<Node> buckets_;    // heads of lists
  std::vector<Node> holders_;    // [blocks]
  Node oldest_ = kRoot, newest_ = kRoot;
  int64_t idle_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace heed
