#include "data/batches/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "data/batches/hash.h"

namespace heed {

Permutation::Permutation(uint64_t n, const RandomKey& key) : n_(n) {
  HEED_CHECK(n > 0, "a permutation must have elements");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  for (int round = 0; round < kRounds; ++round) {
    const auto words = random_block(key, static_cast<uint64_t>(round));
    keys_[static_cast<size_t>(round)] = uint64_t{words[0]} << 32 | words[1];
  }
}

uint64_t Permutation::operator()(uint64_t index) const {
  HEED_DCHECK(index < n_, "an index must be below n");
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = index >> half_bits_, right = index & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mix_bits(right ^ key) & mask);
      left = right;
      right = next;
    }
    index = left << half_bits_ | right;
  } while (index >= n_);
  return index;
}

}  // namespace heed
