#include "text/unicode/charsmap.h"

#include <bit>
#include <cstring>

#include "heed/error.h"

namespace heed {
namespace {

[[noreturn]] void corrupt(const std::string& why) {
  throw Error(ErrorCode::corrupt_file, "precompiled_charsmap: " + why,
              "the file is damaged; download it again");
}

// One unit of the double array: a label to compare with, an offset to the children, a leaf's value.
uint32_t label(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & uint32_t{1} << 9) >> 6); }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }

}  // namespace

static_assert(std::endian::native == std::endian::little,
              "the trie is copied from the file without byte swaps");

Charsmap::Charsmap(std::string_view bytes) {
  uint32_t trie_bytes = 0;
  if (bytes.empty()) return;
  if (bytes.size() < sizeof trie_bytes) corrupt("it is truncated");
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  if (trie_bytes > bytes.size() || trie_bytes % sizeof(uint32_t) != 0) {
    corrupt("its trie must be a multiple of 4 bytes that fits, got " + std::to_string(trie_bytes) +
            " of " + std::to_string(bytes.size()));
  }
  units_.resize(trie_bytes / sizeof(uint32_t));
  if (!units_.empty()) std::memcpy(units_.data(), bytes.data(), trie_bytes);
  replacements_ = bytes.substr(trie_bytes);
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  size_t node = offset(units_[0]);
  for (const char c : text) {
    const uint32_t byte = static_cast<unsigned char>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const size_t begin = value(units_[node]);
    if (begin >= replacements_.size()) return std::nullopt;
    return std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

}  // namespace heed
