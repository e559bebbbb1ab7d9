// Sums and maxima over a row, for layer norm, softmax and the losses.
//
//   const float squares = Sum(d, n, [&](int64_t i, auto io, auto& sum) HEED_INLINE_BODY {
//     const auto v = io.Load(d, x + i);
//     sum = hn::MulAdd(v, v, sum);
//   });
//
// The order of additions is fixed by n alone: neither the row's address nor the rows around it
// change a bit. Lanes beyond n are zero after io.Load; a body whose terms are not zero there
// passes them through Keep.

#if defined(HEED_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_REDUCE_INL_H_
#undef HEED_KERNELS_REDUCE_INL_H_
#else
#define HEED_KERNELS_REDUCE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "kernels/simd/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// v, with zeros (or `other`) in the lanes beyond the end of the row.
template <class D, class V>
HWY_INLINE V Keep(WholeVector, D, V v) {
  return v;
}
template <class D, class V>
HWY_INLINE V Keep(PartOfVector io, D d, V v) {
  return hn::IfThenElseZero(hn::FirstN(d, io.n), v);
}
template <class D, class V>
HWY_INLINE V KeepOr(WholeVector, D, V v, V) {
  return v;
}
template <class D, class V>
HWY_INLINE V KeepOr(PartOfVector io, D d, V v, V other) {
  return hn::IfThenElse(hn::FirstN(d, io.n), v, other);
}

// The sum over all lanes of what `add` puts in its last argument. Four sums run side by side,
// because one would wait for the latency of each addition.
template <class D, class Add>
HWY_INLINE float Sum(D d, int64_t n, const Add& add) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(i, WholeVector{}, a0);
    add(i + lanes, WholeVector{}, a1);
    add(i + 2 * lanes, WholeVector{}, a2);
    add(i + 3 * lanes, WholeVector{}, a3);
  }
  for (; i + lanes <= n; i += lanes) add(i, WholeVector{}, a0);
  if (i < n) add(i, PartOfVector{static_cast<size_t>(n - i)}, a1);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3))));
}

struct TwoSums {
  float first, second;
};

// Two sums of one pass; two of each run side by side.
template <class D, class Add>
HWY_INLINE TwoSums SumTwo(D d, int64_t n, const Add& add) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    add(i, WholeVector{}, a0, b0);
    add(i + lanes, WholeVector{}, a1, b1);
  }
  for (; i + lanes <= n; i += lanes) add(i, WholeVector{}, a0, b0);
  if (i < n) add(i, PartOfVector{static_cast<size_t>(n - i)}, a1, b1);
  return {hn::GetLane(hn::SumOfLanes(d, hn::Add(a0, a1))),
          hn::GetLane(hn::SumOfLanes(d, hn::Add(b0, b1)))};
}

// The largest of x [n], which may come out as the lowest finite float if all are -infinity
// (Highway's emulated target does that). Does not promise to find a NaN.
template <class D>
HWY_INLINE float MaxOf(D d, int64_t n, const float* x) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::Vec<D> lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  hn::Vec<D> a0 = lowest, a1 = lowest, a2 = lowest, a3 = lowest;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = hn::Max(a0, hn::LoadU(d, x + i));
    a1 = hn::Max(a1, hn::LoadU(d, x + i + lanes));
    a2 = hn::Max(a2, hn::LoadU(d, x + i + 2 * lanes));
    a3 = hn::Max(a3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a0 = hn::Max(a0, hn::LoadU(d, x + i));
  if (i < n) {
    const PartOfVector io{static_cast<size_t>(n - i)};
    a1 = hn::Max(a1, KeepOr(io, d, io.Load(d, x + i), lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a0, a1), hn::Max(a2, a3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_REDUCE_INL_H_
