// A matrix product of our own behind the seam of gemm.h, for CPUs on which it beats the library's.
//
// Both operands are packed, as GotoBLAS does it: columns of B into panels that stay in the
// second-level cache, rows of A into chunks that stay in the first, and a register tile walks
// through both step by step. Every element is one sum over k in parts of fixed size, so the bits
// depend on the shape alone and not on the number of threads.
#pragma once

#include "base/thread_pool.h"
#include "kernels/gemm.h"

namespace heed::kernels {

// What gemm() does, with m, n and k above 0. Takes up to 800 KB for packing from malloc and gives
// them back, as the library does.
void tiled_gemm(ThreadPool& pool, const Gemm& product);

// Whether it is the faster one for that product on this CPU. A table and no measurement at run
// time, so that a training that is resumed has the same bits.
bool tiled_gemm_is_faster(const Gemm& product);

}  // namespace heed::kernels
