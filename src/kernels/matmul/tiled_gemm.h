// A GEMM in the manner of GotoBLAS: B is packed into panels that stay in L2, a transposed A into
// chunks that stay in L1, and a register tile runs over both while the next panels are prefetched.
// Each thread computes regions of C from packing to the last sum and shares nothing it writes; the
// bits depend on the shape alone.
//
// matmul.h uses ordered_gemm() for the forward of many rows; gemm.h uses tiled_gemm() for gradients
// on CPUs where it is faster than oneDNN.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/matmul/gemm.h"

namespace heed::kernels {

// gemm() for M, N and K above 0. Every element is one sum over K in parts of fixed size. Allocates up
// to kTiledGemmBytes for each thread and frees them, as oneDNN does.
void tiled_gemm(ThreadPool& pool, const Gemm& product);

// Whether it is faster than oneDNN for that shape on this CPU. By a rule instead of a measurement at
// run time, so that a resumed training run has the same bits.
bool tiled_gemm_is_faster(const Gemm& product);

// The same with every element one chain of fused multiply-adds over K in order, from 0 or, when
// `accumulate`, from C. scratch: tiled_gemm_scratch_floats(), aligned to a cache line.
void ordered_gemm(ThreadPool& pool, const Gemm& product, float* scratch);

// `threads` is that of the pool.
int64_t tiled_gemm_scratch_floats(int64_t m, int64_t n, int64_t k, int threads);

// Floats that a thread packs at a time: they stay in L2.
inline constexpr int64_t kTiledGemmPanelFloats = 3 << 16;
inline constexpr int64_t kTiledGemmBytes = kTiledGemmPanelFloats * int64_t{sizeof(float)};

}  // namespace heed::kernels
