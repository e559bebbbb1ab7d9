// Philox4x32-10 on vectors: the same bits as heed::random_block (base/philox.h) for every
// instruction set.

#if defined(HEED_KERNELS_RANDOM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_RANDOM_INL_H_
#undef HEED_KERNELS_RANDOM_INL_H_
#else
#define HEED_KERNELS_RANDOM_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "base/philox.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Blocks are made sixteen at a time: one vector of AVX-512, two of AVX2, four of SSE or NEON.
inline constexpr size_t kRandomBlocks = 16;
inline constexpr size_t kRandomWords = 4 * kRandomBlocks;

// One stream with the key of every round worked out beforehand.
struct RandomStream {
  RandomKey key;
  uint32_t key0[philox::kRounds], key1[philox::kRounds];

  explicit RandomStream(const RandomKey& stream) : key(stream) {
    uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < philox::kRounds; ++round) {
      key0[round] = k0, key1[round] = k1;
      k0 += philox::kWeyl0, k1 += philox::kWeyl1;
    }
  }
};

#if HWY_TARGET == HWY_SCALAR

// words [4, kRandomBlocks] = the blocks first_block … first_block + 15, word by word.
HWY_INLINE void random_blocks(const RandomStream& stream, uint64_t first_block, uint32_t* words) {
  for (size_t block = 0; block < kRandomBlocks; ++block) {
    const auto bits = random_block(stream.key, first_block + block);
    for (size_t word = 0; word < 4; ++word) words[word * kRandomBlocks + block] = bits[word];
  }
}

#else

// Philox's counter for as many blocks as a vector has 64-bit lanes. Only the low half of each lane
// counts: the multiplication reads no other, so nothing has to clear the rest between rounds.
template <class D32>
struct PhiloxLanes {
  using D64 = hn::RepartitionToWide<D32>;
  hn::Vec<D32> c0, c1, c2, c3;

  HWY_INLINE PhiloxLanes(D32 d32, const RandomKey& key, hn::Vec<D64> blocks)
      : c0(hn::BitCast(d32, blocks)),
        c1(hn::BitCast(d32, hn::ShiftRight<32>(blocks))),
        c2(hn::Set(d32, key.site)),
        c3(hn::Set(d32, key.step)) {}

  // A product's upper half is brought down by swapping the halves, not by a shift, which would wait
  // for the port that multiplies.
  HWY_INLINE void Round(D32 d32, hn::Vec<D32> key0, hn::Vec<D32> key1) {
    const auto p0 = hn::MulEven(c0, hn::Set(d32, philox::kMultiplier0));
    const auto p1 = hn::MulEven(c2, hn::Set(d32, philox::kMultiplier1));
    c0 = hn::Xor(hn::Xor(hn::Shuffle2301(hn::BitCast(d32, p1)), c1), key0);
    c2 = hn::Xor(hn::Xor(hn::Shuffle2301(hn::BitCast(d32, p0)), c3), key1);
    c1 = hn::BitCast(d32, p1);
    c3 = hn::BitCast(d32, p0);
  }
};

// words [4, kRandomBlocks] = the blocks first_block … first_block + 15, word by word; aligned as a
// vector. Even and odd blocks go through the rounds apart, which keeps both halves of Philox's
// 64-bit products where they are needed, and are put side by side at the end.
HWY_INLINE void random_blocks(const RandomStream& stream, uint64_t first_block,
                              uint32_t* HWY_RESTRICT words) {
  const hn::CappedTag<uint32_t, kRandomBlocks> d32;
  const hn::RepartitionToWide<decltype(d32)> d64;
  const auto twice_lane = hn::ShiftLeft<1>(hn::Iota(d64, 0));
  for (size_t lane = 0; lane < kRandomBlocks; lane += hn::Lanes(d32)) {
    const auto blocks = hn::Add(hn::Set(d64, first_block + lane), twice_lane);
    PhiloxLanes<decltype(d32)> even(d32, stream.key, blocks);
    PhiloxLanes<decltype(d32)> odd(d32, stream.key, hn::Add(blocks, hn::Set(d64, uint64_t{1})));
    for (int round = 0; round < philox::kRounds; ++round) {
      const auto key0 = hn::Set(d32, stream.key0[round]);
      const auto key1 = hn::Set(d32, stream.key1[round]);
      even.Round(d32, key0, key1);
      odd.Round(d32, key0, key1);
    }
    const auto store = [&](size_t word, hn::Vec<decltype(d32)> from_even,
                           hn::Vec<decltype(d32)> from_odd) HWY_ATTR {
      const auto high = hn::BitCast(d32, hn::ShiftLeft<32>(hn::BitCast(d64, from_odd)));
      hn::Store(hn::OddEven(high, from_even), d32, words + word * kRandomBlocks + lane);
    };
    store(0, even.c0, odd.c0);
    store(1, even.c1, odd.c1);
    store(2, even.c2, odd.c2);
    store(3, even.c3, odd.c3);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_RANDOM_INL_H_
