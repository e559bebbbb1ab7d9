// One loop for every element-wise kernel: whole vectors first, then the part of one that is left.
//
//   for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
//     io.Store(hn::Mul(factor, io.Load(d, x + i)), d, y + i);
//   });
//
// The body is written once and does the same arithmetic on the tail as on whole vectors, so that
// cutting a range anywhere gives the same bits. Nothing beyond n is read or written.
// Vector functions are named as Highway names its own.

#if defined(HEED_KERNELS_VECTOR_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_VECTOR_LOOP_INL_H_
#undef HEED_KERNELS_VECTOR_LOOP_INL_H_
#else
#define HEED_KERNELS_VECTOR_LOOP_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

// A body stands in the loop several times (unrolled, and for the tail). Compilers then like to make
// it a function, and to keep the sums in memory for it: forbid that.
#ifndef HEED_INLINE_BODY
#define HEED_INLINE_BODY HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether masked loads and stores of T leave the lanes outside the mask untouched. Highway's
// MaskedLoad reads the whole vector (and wants it aligned) where the instruction set has no such
// load: everything before AVX2, and 16-bit lanes on AVX2.
template <class T>
constexpr bool masks_memory() {
  return !HWY_MEM_OPS_MIGHT_FAULT || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);
}

// The first n lanes from p, zeros in the others; 0 < n < Lanes(d).
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, size_t n, const T* p) {
  if constexpr (masks_memory<T>()) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, p);
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
    for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
    return hn::Load(d, lanes);
  }
}

// The first n lanes of v to p.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(hn::Vec<D> v, D d, size_t n, T* p) {
  if constexpr (masks_memory<T>()) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, lanes);
    for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
}

// How a loop's body reaches memory: all lanes of a vector …
struct WholeVector {
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const hn::TFromD<D>* p) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> v, D d, hn::TFromD<D>* p) const {
    hn::StoreU(v, d, p);
  }
};

// … or the first n of them.
struct PartOfVector {
  size_t n;
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const hn::TFromD<D>* p) const {
    return LoadFirst(d, n, p);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> v, D d, hn::TFromD<D>* p) const {
    StoreFirst(v, d, n, p);
  }
};

// Calls body(i, io) for the vectors that cover [0, n); i is the index of a vector's first element.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t n, const Body& body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, WholeVector{});
  if (i < n) body(i, PartOfVector{static_cast<size_t>(n - i)});
}

// Calls body(i) for i = 0, 1, … kCount - 1, each a constant of its own. An array of vectors that is
// reached by such indices alone is taken apart into registers; one that a loop walks through is
// not, even if the compiler unrolls the loop later.
template <class Body, int... kIndices>
HWY_INLINE void unrolled(const Body& body, std::integer_sequence<int, kIndices...>) {
  (body(std::integral_constant<int, kIndices>()), ...);
}
template <int kCount, class Body>
HWY_INLINE void unrolled(const Body& body) {
  unrolled(body, std::make_integer_sequence<int, kCount>());
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNELS_VECTOR_LOOP_INL_H_
