// A matrix product of our own, as GotoBLAS does it: B is packed into panels that stay in the
// second-level cache, a transposed A into chunks that stay in the first, and a register tile walks
// through both step by step. Meanwhile memory brings what will be packed next. Threads compute
// parts of C, each from packing to the last sum, and share nothing they write; bits depend on the
// shape alone.
//
// It serves the forward (ordered_gemm(), by way of matmul.h) and, behind the seam of gemm.h,
// gradients on CPUs on which it beats the library's (tiled_gemm()).
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/matmul/gemm.h"

namespace heed::kernels {

// What gemm() does, with m, n and k above 0: every element is one sum over k in parts of fixed
// size. Takes kTiledGemmBytes at most a thread for packing from malloc and gives them back, as the
// library does.
void tiled_gemm(ThreadPool& pool, const Gemm& product);

// Whether it is the faster one for that product on this CPU. A table and no measurement at run
// time, so that a training that is resumed has the same bits.
bool tiled_gemm_is_faster(const Gemm& product);

// The same with every element one chain of fused multiply-adds over k in order, from 0 or, when
// `accumulate`, from what C holds. scratch: tiled_gemm_scratch_floats(), on a cache line.
void ordered_gemm(ThreadPool& pool, const Gemm& product, float* scratch);

// `threads` is that of the pool.
int64_t tiled_gemm_scratch_floats(int64_t m, int64_t n, int64_t k, int threads);

// Floats that a thread packs at a time: they stay in the second-level cache.
inline constexpr int64_t kTiledGemmPanelFloats = 3 << 16;
inline constexpr int64_t kTiledGemmBytes = kTiledGemmPanelFloats * int64_t{sizeof(float)};

}  // namespace heed::kernels
