// Tokenized examples in one memory-mapped file: random access, written in one pass, may exceed memory.
//
//   TokenStoreWriter writer(path, fingerprint);
//   for (…) writer.add(ids, more_ids);
//   TokenStore store = writer.finish(metadata);
//   store.first(17), store.second(17)          // spans into the mapped file
//
// An example is two lists of int32; the objective defines their meaning (example.h).
//
// The file: blocks of kBlockExamples examples, each with its offsets (uint32, in ids from the end of
// the offsets, 2 per example and 1 more) and its ids; the index, one BlockEntry per block; the
// metadata, any text; and a trailer with counts and checksums. Little-endian. The trailer is last so
// that one pass writes the file; a truncated file has none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"

namespace heed {

class TokenStore {
 public:
  static constexpr int64_t kBlockExamples = 1024;

  // None when the file is missing, damaged, or has another fingerprint. The checksums of a small file
  // (kCheckedBytes) are verified here; those of a larger one at each block's first use, which throws
  // corrupt_file.
  static std::optional<TokenStore> open(const std::string& path, uint64_t fingerprint);
  static constexpr uint64_t kCheckedBytes = uint64_t{1} << 28;

  int64_t examples() const { return examples_; }
  int64_t first_tokens() const { return first_tokens_; }  // ids of all first lists
  const std::string& metadata() const { return metadata_; }

  std::span<const int32_t> first(int64_t example) const { return list(example, 0); }
  std::span<const int32_t> second(int64_t example) const { return list(example, 1); }
  int64_t first_size(int64_t example) const { return std::ssize(first(example)); }
  int64_t second_size(int64_t example) const { return std::ssize(second(example)); }

  // Ids [begin, begin + out.size()) of all first lists concatenated.
  void copy_stream(int64_t begin, std::span<int32_t> out) const;

  struct BlockEntry {
    uint64_t offset = 0;        // of the block in the file, in bytes
    uint64_t checksum = 0;      // of the block
    uint64_t first_tokens = 0;  // in the first lists of all earlier blocks
  };

 private:
  friend class TokenStoreWriter;
  TokenStore() = default;
  bool adopt(std::span<const std::byte> bytes, uint64_t fingerprint);
  bool block_is_sound(int64_t block) const;
  std::span<const std::byte> block_bytes(int64_t block) const;
  std::span<const int32_t> list(int64_t example, int64_t which) const;
  [[noreturn]] void damaged(int64_t block) const;

  std::optional<MappedFile> file_;  // or
  std::vector<uint64_t> memory_;    // uint64_t for the alignment
  std::span<const std::byte> bytes_;
  std::vector<BlockEntry> index_;  // with an end entry
  std::string metadata_;
  int64_t examples_ = 0, first_tokens_ = 0;
  mutable std::vector<bool> checked_;
};

class TokenStoreWriter {
 public:
  // An empty path keeps the store in memory.
  TokenStoreWriter(const std::string& path, uint64_t fingerprint);

  void add(std::span<const int32_t> first, std::span<const int32_t> second);
  int64_t examples() const { return examples_; }
  TokenStore finish(std::string_view metadata);

 private:
  void flush_block();
  void write(std::span<const std::byte> bytes);

  std::string path_;
  uint64_t fingerprint_;
  std::optional<AtomicFile> file_;
  std::vector<std::byte> memory_;
  std::vector<uint32_t> offsets_{0};  // of the current block
  std::vector<int32_t> ids_;
  std::vector<TokenStore::BlockEntry> index_;
  uint64_t written_ = 0, first_tokens_ = 0, block_first_tokens_ = 0;
  int64_t examples_ = 0;
};

}  // namespace heed
