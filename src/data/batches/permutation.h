// A random permutation of [0, n) that is computed, not stored: an epoch's shuffle in O(1) memory.
//
//   Permutation order(examples, {.seed = seed, .step = epoch});
//   order(0), order(1), …        // each number below n once
//
// A Feistel network over the next even number of bits, keyed by the counter-based RNG, with cycle
// walking until the result is inside [0, n) (Black & Rogaway 2002): at most four steps on average.
#pragma once

#include <array>
#include <cstdint>

#include "base/philox.h"

namespace heed {

class Permutation {
 public:
  Permutation(uint64_t n, const RandomKey& key);

  uint64_t size() const { return n_; }
  uint64_t operator()(uint64_t index) const;  // index < n

 private:
  static constexpr int kRounds = 6;  // 4 make a Feistel network pseudo-random (Luby & Rackoff 1988)

  uint64_t n_;
  int half_bits_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

}  // namespace heed
