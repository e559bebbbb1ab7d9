#include "kernels/rows/dropout.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/dropout.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "base/check.h"
#include "hwy/highway.h"
#include "kernels/simd/random-inl.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector never reaches past the sixteen blocks of a group.
using DropoutLanes = hn::CappedTag<float, kRandomBlocks>;
using DropoutMask = hn::Mask<DropoutLanes>;

inline constexpr int kChoices = 1 << 16;  // the values that an element's 16 random bits can take
static_assert(kDropoutGroup == 8 * kRandomBlocks, "a block of 128 bits serves 8 elements");

// p so near 1 that it rounds to "keep none" keeps one in 65536: a scale must exist.
HWY_INLINE int dropout_threshold(float p) {
  return std::min(static_cast<int>(std::lround(static_cast<double>(p) * kChoices)), kChoices - 1);
}

HWY_INLINE float dropout_scale(int threshold) {
  return static_cast<float>(static_cast<double>(kChoices) / (kChoices - threshold));
}

// Which lanes have 16 bits >= threshold. `halves` holds them as non-negative 32-bit integers;
// below = threshold - 1, because instruction sets compare with > only.
template <class DI, class VI = hn::Vec<DI>>
HWY_INLINE DropoutMask Kept(DI, VI halves, VI below) {
  return hn::RebindMask(DropoutLanes(), hn::Gt(halves, below));
}

// Calls visit(j, kept) for the elements j of one group, a vector at a time: the low halves of a
// word's blocks are the elements j …, the high halves j + kRandomBlocks ….
template <class Visit>
HWY_INLINE void visit_group(const RandomStream& stream, uint64_t group, int threshold,
                            const Visit& visit) {
  const hn::RebindToUnsigned<DropoutLanes> du;
  const hn::RebindToSigned<DropoutLanes> di;
  HWY_ALIGN uint32_t words[kRandomWords];
  random_blocks(stream, group * kRandomBlocks, words);
  const auto below = hn::Set(di, threshold - 1);
  const auto low_half = hn::Set(du, uint32_t{kChoices - 1});
  for (size_t word = 0; word < 4; ++word) {
    for (size_t lane = 0; lane < kRandomBlocks; lane += hn::Lanes(du)) {
      const auto bits = hn::Load(du, words + word * kRandomBlocks + lane);
      const auto low = hn::BitCast(di, hn::And(bits, low_half));
      const auto high = hn::BitCast(di, hn::ShiftRight<16>(bits));
      const int64_t j = static_cast<int64_t>(2 * word * kRandomBlocks + lane);
      visit(j, Kept(di, low, below));
      visit(j + static_cast<int64_t>(kRandomBlocks), Kept(di, high, below));
    }
  }
}

// Calls body(i, io, kept) for the vectors that cover [0, n), with the choices from `group` on.
template <class Body>
HWY_INLINE void for_each_choice(const RandomKey& key, uint64_t group, int threshold, int64_t n,
                                const Body& body) {
  const RandomStream stream(key);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(DropoutLanes()));
  int64_t i = 0;
  for (; i + kDropoutGroup <= n; i += kDropoutGroup, ++group) {
    visit_group(stream, group, threshold,
                [&](int64_t j, DropoutMask kept) HWY_ATTR { body(i + j, WholeVector{}, kept); });
  }
  if (i == n) return;
  visit_group(stream, group, threshold, [&](int64_t j, DropoutMask kept) HWY_ATTR {
    const int64_t rest = n - i - j;
    if (rest >= lanes) {
      body(i + j, WholeVector{}, kept);
    } else if (rest > 0) {
      body(i + j, PartOfVector{static_cast<size_t>(rest)}, kept);
    }
  });
}

void dropout_kernel(const Dropout& dropout, uint64_t group, const float* x, float* y, int64_t n) {
  const DropoutLanes d;
  const int threshold = dropout_threshold(dropout.p);
  if (threshold == 0) {
    if (x != y) std::copy_n(x, n, y);
    return;
  }
  const auto scale = hn::Set(d, dropout_scale(threshold));
  for_each_choice(dropout.key, group, threshold, n,
                  [&](int64_t i, auto io, DropoutMask kept) HWY_ATTR {
                    const auto scaled = hn::Mul(io.Load(d, x + i), scale);
                    io.Store(hn::IfThenElseZero(kept, scaled), d, y + i);
                  });
}

void dropout_add_kernel(const Dropout& dropout, uint64_t group, const float* x,
                        const float* residual, float* y, int64_t n) {
  const DropoutLanes d;
  const int threshold = dropout_threshold(dropout.p);
  if (threshold == 0) {
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.Store(hn::Add(io.Load(d, x + i), io.Load(d, residual + i)), d, y + i);
    });
    return;
  }
  const auto scale = hn::Set(d, dropout_scale(threshold));
  for_each_choice(dropout.key, group, threshold, n,
                  [&](int64_t i, auto io, DropoutMask kept) HWY_ATTR {
                    const auto stays = io.Load(d, residual + i);
                    const auto sum = hn::MulAdd(io.Load(d, x + i), scale, stays);
                    io.Store(hn::IfThenElse(kept, sum, stays), d, y + i);
                  });
}

void dropout_factors_kernel(const Dropout& dropout, uint64_t group, float* factors, int64_t n) {
  const DropoutLanes d;
  const int threshold = dropout_threshold(dropout.p);
  if (threshold == 0) {
    std::fill_n(factors, n, 1.0f);
    return;
  }
  const auto scale = hn::Set(d, dropout_scale(threshold));
  for_each_choice(dropout.key, group, threshold, n,
                  [&](int64_t i, auto io, DropoutMask kept)
                      HWY_ATTR { io.Store(hn::IfThenElseZero(kept, scale), d, factors + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(dropout_kernel);
HWY_EXPORT(dropout_add_kernel);
HWY_EXPORT(dropout_factors_kernel);

namespace {

uint64_t group_of(int64_t first_element) {
  HEED_DCHECK(first_element >= 0 && first_element % kDropoutGroup == 0,
              "dropout: the range must start at a whole group");
  return static_cast<uint64_t>(first_element / kDropoutGroup);
}

}  // namespace

void dropout(const Dropout& dropout, int64_t first_element, const float* x, float* y, int64_t n) {
  HEED_DCHECK(dropout.p >= 0 && dropout.p < 1, "dropout: p must be in [0, 1)");
  HWY_DYNAMIC_DISPATCH(dropout_kernel)(dropout, group_of(first_element), x, y, n);
}

void dropout_add(const Dropout& dropout, int64_t first_element, const float* x,
                 const float* residual, float* y, int64_t n) {
  HEED_DCHECK(dropout.p >= 0 && dropout.p < 1, "dropout: p must be in [0, 1)");
  HWY_DYNAMIC_DISPATCH(dropout_add_kernel)(dropout, group_of(first_element), x, residual, y, n);
}

void dropout_factors(const Dropout& dropout, uint64_t first_group, float* factors, int64_t n) {
  HEED_DCHECK(dropout.p >= 0 && dropout.p < 1, "dropout: p must be in [0, 1)");
  HWY_DYNAMIC_DISPATCH(dropout_factors_kernel)(dropout, first_group, factors, n);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
