// Philox4x32-10 (Salmon et al., SC 2011): random numbers as a pure function of a counter.
//
// Every random choice in Heed is a function of (seed, step, site, element) and never of thread
// order, so a run is the same for any number of threads and a resumed run equals an unbroken one.
// `site` numbers the call in the model's code (the n-th dropout of a step).
#pragma once

#include <array>
#include <cstdint>

namespace heed {

// The stream that one site draws from in one step.
struct RandomKey {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t site = 0;
};

namespace philox {
inline constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
inline constexpr int kRounds = 10;
}  // namespace philox

// The 128 random bits of block `block` of the stream `key`: Philox with the counter
// {block low, block high, site, step} and the seed as its key.
constexpr std::array<uint32_t, 4> random_block(const RandomKey& key, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = key.site, c3 = key.step;
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < philox::kRounds; ++round) {
    const uint64_t p0 = uint64_t{philox::kMultiplier0} * c0;
    const uint64_t p1 = uint64_t{philox::kMultiplier1} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1), c3 = static_cast<uint32_t>(p0);
    c0 = n0, c2 = n2;
    k0 += philox::kWeyl0, k1 += philox::kWeyl1;
  }
  return {c0, c1, c2, c3};
}

// A sequence of numbers drawn from one stream, for initialisation, shuffling and tests.
class Random {
 public:
  explicit Random(RandomKey key, uint64_t first_block = 0) : key_(key), block_(first_block) {}

  uint32_t next();             // 32 uniform bits
  uint64_t below(uint64_t n);  // uniform in [0, n), without bias; n > 0
  float uniform();             // uniform in [0, 1), 24 bits
  float normal();              // mean 0, variance 1 (Box–Muller)

 private:
  RandomKey key_;
  uint64_t block_;
  std::array<uint32_t, 4> words_{};
  int used_ = 4;
};

}  // namespace heed
