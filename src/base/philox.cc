#include "base/philox.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace heed {

uint32_t Random::next() {
  if (used_ == 4) {
    words_ = random_block(key_, block_++);
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t Random::below(uint64_t n) {
  HEED_CHECK(n > 0, "below(n): n must be positive");
  if (n <= std::numeric_limits<uint32_t>::max()) {
    // Lemire 2019: the high word of next() * n; rejecting 2^32 mod n of the low words removes the
    // bias. Nearly always one draw and no division.
    const uint32_t n32 = static_cast<uint32_t>(n);
    uint64_t product = uint64_t{next()} * n32;
    if (static_cast<uint32_t>(product) < n32) {
      const uint32_t rejected = (0u - n32) % n32;
      while (static_cast<uint32_t>(product) < rejected) product = uint64_t{next()} * n32;
    }
    return product >> 32;
  }
  // Rejection sampling with the bits of n - 1: at most two draws on average.
  uint64_t mask = n - 1;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  for (;;) {
    const uint64_t high = next();
    const uint64_t candidate = ((high << 32) | next()) & mask;
    if (candidate < n) return candidate;
  }
}

float Random::uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }

float Random::normal() {
  // Box–Muller without its second number: a call always takes two words, so its result depends only
  // on its position in the stream. All 32 bits are used for the radius: the tail reaches 6.66; with
  // uniform()'s 24 bits it would end at 5.77.
  const float radius_bits = (static_cast<float>(next()) + 1.0f) * 0x1p-32f;  // in (0, 1]
  const float radius = std::sqrt(-2.0f * std::log(radius_bits));
  const float angle = 2.0f * std::numbers::pi_v<float> * uniform();
  return radius * std::cos(angle);
}

}  // namespace heed
