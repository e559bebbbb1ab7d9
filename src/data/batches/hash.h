// A fast 64-bit hash, not cryptographic: checksums and fingerprints of token stores, duplicates.
//
// Not xxHash: its values are in the names and trailers of existing token stores, in the fingerprints
// of train/validation splits, and mix_bits() defines the shuffle of every epoch. Another hash would
// rebuild all caches, and a resumed run would see its examples in another order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace heed {

// The finalizer of MurmurHash3: every bit of x affects every bit of the result.
constexpr uint64_t mix_bits(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

inline uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15ull;  // 2^64 / the golden ratio
  const uint64_t size = bytes.size();
  // Four independent chains: one would be limited by the latency of the multiplication.
  uint64_t lanes[4] = {seed, seed + kFactor, seed ^ kFactor, ~seed};
  const auto word = [](const std::byte* from) {
    uint64_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const auto step = [](uint64_t lane, uint64_t value) {
    lane = (lane ^ value) * kFactor;
    return lane ^ (lane >> 29);
  };
  while (bytes.size() >= 32) {
    for (int lane = 0; lane < 4; ++lane) {
      lanes[lane] = step(lanes[lane], word(bytes.data() + 8 * lane));
    }
    bytes = bytes.subspan(32);
  }
  uint64_t hash = size;
  for (const uint64_t lane : lanes) hash = step(hash, mix_bits(lane));
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) hash = step(hash, word(bytes.data()));
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  return mix_bits(step(hash, rest));
}

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(std::as_bytes(std::span(text)), seed);
}

inline uint64_t hash_ids(std::span<const int32_t> ids, uint64_t seed = 0) {
  return hash_bytes(std::as_bytes(ids), seed);
}

// 16 digits, for file names.
inline std::string hexadecimal(uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

}  // namespace heed
