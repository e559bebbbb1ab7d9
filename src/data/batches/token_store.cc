#include "data/batches/token_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/check.h"
#include "data/batches/hash.h"
#include "heed/error.h"

namespace heed {

static_assert(std::endian::native == std::endian::little, "the file is mapped without byte swaps");

namespace {

constexpr uint64_t kMagic = 0x31534B4F54444548ull;  // "HEDTOKS1": the 1 is the format's version

struct Trailer {
  uint64_t fingerprint = 0;
  uint64_t examples = 0, blocks = 0, first_tokens = 0;
  uint64_t index_offset = 0, metadata_bytes = 0;
  uint64_t checksum = 0;  // of the index, the metadata and the fields above
  uint64_t magic = kMagic;
};

template <class T>
std::span<const std::byte> bytes_of_value(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

uint64_t trailer_checksum(const Trailer& trailer, std::span<const std::byte> index_and_metadata) {
  const auto fields = bytes_of_value(trailer).first(offsetof(Trailer, checksum));
  return hash_bytes(fields, hash_bytes(index_and_metadata));
}

uint64_t round_up_8(uint64_t n) { return (n + 7) & ~uint64_t{7}; }

}  // namespace

std::optional<TokenStore> TokenStore::open(const std::string& path, uint64_t fingerprint) {
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  TokenStore store;
  store.file_.emplace(path);
  if (!store.adopt(store.file_->bytes(), fingerprint)) return std::nullopt;
  if (store.bytes_.size() <= kCheckedBytes) {
    for (int64_t block = 0; block + 1 < std::ssize(store.index_); ++block) {
      if (!store.block_is_sound(block)) return std::nullopt;
    }
  }
  return store;
}

bool TokenStore::adopt(std::span<const std::byte> bytes, uint64_t fingerprint) {
  Trailer trailer;
  if (bytes.size() < sizeof trailer) return false;
  const uint64_t trailer_offset = bytes.size() - sizeof trailer;
  std::memcpy(&trailer, bytes.data() + trailer_offset, sizeof trailer);
  if (trailer.magic != kMagic || trailer.fingerprint != fingerprint) return false;
  if (trailer.index_offset > trailer_offset) return false;
  const auto tail = bytes.subspan(trailer.index_offset, trailer_offset - trailer.index_offset);
  if (trailer_checksum(trailer, tail) != trailer.checksum) return false;

  // A checksum only detects damage; the checks below keep every access inside the file.
  const uint64_t index_bytes = (trailer.blocks + 1) * sizeof(BlockEntry);
  if (trailer.blocks > tail.size() / sizeof(BlockEntry) || index_bytes > tail.size() ||
      trailer.metadata_bytes > tail.size() - index_bytes) {
    return false;
  }
  index_.resize(trailer.blocks + 1);
  std::memcpy(index_.data(), tail.data(), index_bytes);
  metadata_.assign(reinterpret_cast<const char*>(tail.data()) + index_bytes,
                   trailer.metadata_bytes);
  BlockEntry previous;
  for (const BlockEntry& entry : index_) {
    if (entry.offset < previous.offset || entry.offset > trailer.index_offset ||
        entry.offset % 8 != 0 || entry.first_tokens < previous.first_tokens) {
      return false;
    }
    previous = entry;
  }
  if (index_.front().first_tokens != 0 || index_.back().first_tokens != trailer.first_tokens) {
    return false;
  }
  // All blocks except the last are full.
  constexpr uint64_t kFull = kBlockExamples;
  if (trailer.blocks != trailer.examples / kFull + (trailer.examples % kFull != 0)) return false;
  bytes_ = bytes;
  examples_ = static_cast<int64_t>(trailer.examples);
  first_tokens_ = static_cast<int64_t>(trailer.first_tokens);
  checked_.assign(trailer.blocks, false);
  return true;
}

std::span<const std::byte> TokenStore::block_bytes(int64_t block) const {
  const auto b = static_cast<size_t>(block);
  return bytes_.subspan(index_[b].offset, index_[b + 1].offset - index_[b].offset);
}

bool TokenStore::block_is_sound(int64_t block) const {
  const auto b = static_cast<size_t>(block);
  if (checked_[b]) return true;
  const auto bytes = block_bytes(block);
  if (hash_bytes(bytes) != index_[b].checksum) return false;
  // Once per block: list() and copy_stream() rely on it.
  const int64_t lists = 2 * std::min(kBlockExamples, examples_ - block * kBlockExamples);
  const uint64_t offset_count = static_cast<uint64_t>(lists) + 1;
  if (bytes.size() < offset_count * sizeof(uint32_t)) return false;
  const auto* offsets = reinterpret_cast<const uint32_t*>(bytes.data());
  const uint64_t ids = bytes.size() / sizeof(int32_t) - offset_count;
  for (uint64_t i = 0; i < offset_count; ++i) {
    if (offsets[i] > ids || (i > 0 && offsets[i] < offsets[i - 1])) return false;
  }
  uint64_t first_tokens = 0;
  for (int64_t i = 0; i < lists; i += 2) first_tokens += offsets[i + 1] - offsets[i];
  if (first_tokens != index_[b + 1].first_tokens - index_[b].first_tokens) return false;
  checked_[b] = true;
  return true;
}

std::span<const int32_t> TokenStore::list(int64_t example, int64_t which) const {
  HEED_CHECK(example >= 0 && example < examples_, "an example must be in range");
  const int64_t block = example / kBlockExamples;
  if (!checked_[static_cast<size_t>(block)] && !block_is_sound(block)) damaged(block);
  const int64_t lists = 2 * std::min(kBlockExamples, examples_ - block * kBlockExamples);
  const auto* offsets = reinterpret_cast<const uint32_t*>(block_bytes(block).data());
  const auto* ids = reinterpret_cast<const int32_t*>(offsets + lists + 1);
  const int64_t i = 2 * (example % kBlockExamples) + which;
  return {ids + offsets[i], ids + offsets[i + 1]};
}

void TokenStore::damaged(int64_t block) const {
  throw Error(ErrorCode::corrupt_file,
              file_->path() + ": the checksum of block " + std::to_string(block) +
                  " does not match its content",
              "delete the file; the next run rebuilds it");
}

void TokenStore::copy_stream(int64_t begin, std::span<int32_t> out) const {
  HEED_CHECK(begin >= 0 && begin + std::ssize(out) <= first_tokens_,
             "a range must be inside the stream");
  if (out.empty()) return;
  // The last block that starts at or before `begin`.
  const auto after = std::upper_bound(
      index_.begin(), index_.end() - 1, static_cast<uint64_t>(begin),
      [](uint64_t place, const BlockEntry& entry) { return place < entry.first_tokens; });
  const int64_t block = after - index_.begin() - 1;
  int64_t example = block * kBlockExamples;
  int64_t skip = begin - static_cast<int64_t>(index_[static_cast<size_t>(block)].first_tokens);
  while (!out.empty()) {
    std::span<const int32_t> ids = first(example++);
    if (skip >= std::ssize(ids)) {
      skip -= std::ssize(ids);
      continue;
    }
    ids = ids.subspan(static_cast<size_t>(skip));
    skip = 0;
    const size_t n = std::min(ids.size(), out.size());
    std::copy_n(ids.begin(), n, out.begin());
    out = out.subspan(n);
  }
}

TokenStoreWriter::TokenStoreWriter(const std::string& path, uint64_t fingerprint)
    : path_(path), fingerprint_(fingerprint) {
  if (!path.empty()) file_.emplace(path);
}

void TokenStoreWriter::add(std::span<const int32_t> first, std::span<const int32_t> second) {
  if (ids_.size() + first.size() + second.size() > std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::unsupported,
                path_ + ": " + std::to_string(TokenStore::kBlockExamples) +
                    " examples must not exceed 2^32 tokens",
                "split the documents");
  }
  for (const std::span<const int32_t> list : {first, second}) {
    ids_.insert(ids_.end(), list.begin(), list.end());
    offsets_.push_back(static_cast<uint32_t>(ids_.size()));
  }
  block_first_tokens_ += first.size();
  if (++examples_ % TokenStore::kBlockExamples == 0) flush_block();
}

void TokenStoreWriter::flush_block() {
  std::vector<int32_t> block(offsets_.size() + ids_.size());
  std::memcpy(block.data(), offsets_.data(), offsets_.size() * sizeof(uint32_t));
  std::copy(ids_.begin(), ids_.end(), block.begin() + std::ssize(offsets_));
  if (block.size() % 2 != 0) block.push_back(0);  // aligns the next one to 8 bytes
  const auto bytes = std::as_bytes(std::span(block));
  index_.push_back(
      {.offset = written_, .checksum = hash_bytes(bytes), .first_tokens = first_tokens_});
  write(bytes);
  first_tokens_ += std::exchange(block_first_tokens_, 0);
  offsets_.assign(1, 0);
  ids_.clear();
}

TokenStore TokenStoreWriter::finish(std::string_view metadata) {
  if (offsets_.size() > 1) flush_block();
  Trailer trailer{.fingerprint = fingerprint_,
                  .examples = static_cast<uint64_t>(examples_),
                  .blocks = index_.size(),
                  .first_tokens = first_tokens_,
                  .index_offset = written_,
                  .metadata_bytes = metadata.size()};
  index_.push_back({.offset = written_, .first_tokens = first_tokens_});
  const auto index_bytes = std::as_bytes(std::span(index_));
  std::vector<std::byte> tail(round_up_8(index_bytes.size() + metadata.size()));
  std::memcpy(tail.data(), index_bytes.data(), index_bytes.size());
  if (!metadata.empty()) {
    std::memcpy(tail.data() + index_bytes.size(), metadata.data(), metadata.size());
  }
  trailer.checksum = trailer_checksum(trailer, tail);
  write(tail);
  write(bytes_of_value(trailer));

  if (file_) {
    file_->commit();
    auto store = TokenStore::open(path_, fingerprint_);
    if (!store) {
      throw Error(ErrorCode::corrupt_file, path_ + ": reading back what was written failed",
                  "check the disk, or choose another folder");
    }
    return std::move(*store);
  }
  TokenStore store;
  store.memory_.resize(memory_.size() / sizeof(uint64_t));
  std::memcpy(store.memory_.data(), memory_.data(), memory_.size());
  HEED_CHECK(store.adopt(std::as_bytes(std::span(store.memory_)), fingerprint_),
             "a store in memory must be valid");
  return store;
}

void TokenStoreWriter::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  if (file_) {
    file_->write(bytes);
  } else {
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
  }
}

}  // namespace heed
