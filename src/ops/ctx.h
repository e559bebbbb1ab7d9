// The context of an op: threads, memory, the tape and the random streams.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "base/philox.h"
#include "base/thread_pool.h"
#include "kernels/matmul/gemm.h"
#include "kernels/rows/dropout.h"
#include "ops/mat.h"
#include "ops/tape.h"

namespace heed {

// One forward (and backward) of a model. With a measuring arena (a dry run) nothing is computed: ops
// allocate and record as usual, parallel() and gemm() do nothing, and the arena's peak is what the
// real run with the same pool needs.
struct Ctx {
  ThreadPool& pool;
  Arena& arena;
  Tape* tape = nullptr;  // null: inference

  // Dropout draws from (seed, step, site); each op that draws takes the next site. Set `site` back
  // to 0 for a new step.
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t site = 0;

  bool measuring() const { return arena.is_measuring(); }
  bool training() const { return tape != nullptr; }
  RandomKey next_site() { return {seed, step, site++}; }

  // An uninitialised matrix, valid until the arena is rewound.
  Mat matrix(int64_t rows, int64_t cols) {
    return {arena.allocate<float>(static_cast<size_t>(rows * cols)), rows, cols};
  }
  // The same as an op's output: with a gradient when there is a tape.
  Var activation(int64_t rows, int64_t cols) { return with_gradient(matrix(rows, cols)); }
  Var with_gradient(Mat value) {
    return {value, tape ? tape->gradient(value.rows, value.cols) : nullptr};
  }

  // The output of an op that works in place: the memory of x, or new memory where x must be kept.
  Var in_place(const Var& x) {
    return value_is_kept(x) ? activation(x.rows(), x.cols()) : with_gradient(x.value);
  }

  // body(begin, end) over [0, n) on all threads; see ThreadPool::parallel_for.
  template <class Body>
  void parallel(int64_t n, Grain grain, Body&& body) {
    if (!measuring()) pool.parallel_for(n, grain, body);
  }
  void gemm(const kernels::Gemm& product) {
    if (!measuring()) kernels::gemm(pool, product);
  }
};

// Temporary memory of one op, released at the end of the scope. Allocate outputs before it.
class Scratch {
 public:
  Scratch(Ctx& ctx, int64_t floats) : ctx_(ctx), mark_(ctx.arena.mark()) {
    if (ctx.tape) {
      buffer_ = ctx.tape->take_buffer(ctx.arena, floats);
      data_ = ctx.tape->buffer(buffer_);
    } else {
      data_ = ctx.arena.allocate<float>(static_cast<size_t>(floats));
    }
  }
  ~Scratch() {
    if (buffer_ >= 0) {
      ctx_.tape->give_buffer(ctx_.arena, buffer_);
    } else {
      ctx_.arena.rewind(mark_);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  float* data() const { return data_; }

 private:
  Ctx& ctx_;
  Arena::Mark mark_;
  int buffer_ = -1;
  float* data_ = nullptr;
};

inline void check_dropout(float p) { HEED_CHECK(p >= 0 && p < 1, "dropout must be in [0, 1)"); }

// Least number of elements for a thread in element-wise work: below this, waking it costs more. A
// multiple of dropout's groups of random numbers (kernels/rows/dropout.h).
inline constexpr Grain kElementGrain{16384, kernels::kDropoutGroup};
// The same in rows of a given width.
inline int64_t row_grain(int64_t cols) {
  return cols >= kElementGrain.least ? 1 : kElementGrain.least / (cols > 0 ? cols : 1);
}
// Least number of columns for a thread, in multiples of a vector.
inline constexpr Grain column_grain(int64_t least) { return {least, 16}; }

}  // namespace heed
