#include "kernels/matmul/tiled_gemm.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/matmul/work_split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/tiled_gemm.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/matmul/columns-inl.h"
#include "kernels/matmul/matmul_tile-inl.h"
#include "kernels/simd/simd_types-inl.h"
#include "kernels/simd/vector_loop-inl.h"

#ifndef HEED_KERNELS_TILED_GEMM_ONCE_
#define HEED_KERNELS_TILED_GEMM_ONCE_
namespace heed::kernels {

// C [m, n] = A [m, k] · B [k, n]: M rows, N columns, K the inner dimension.
inline constexpr int64_t kLineFloats = kLineBytes / static_cast<int64_t>(sizeof(float));

// Threads that have enough work.
inline int64_t shares_of(int64_t m, int64_t n, int64_t k, int64_t threads) {
  const double work = static_cast<double>(m) * static_cast<double>(n * k);
  return static_cast<int64_t>(std::clamp(work / kGrainWork, 1.0, static_cast<double>(threads)));
}

// Floats that one thread packs at a time.
inline int64_t share_floats(int64_t n, int64_t k) {
  const int64_t panel = even_part(k, kPackedDepth) * kMaxPanelCols;
  return std::min(panel * ceil_div(n, kMaxPanelCols), kTiledGemmPanelFloats);
}

struct FreeFloats {
  void operator()(float* p) const { std::free(p); }
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of A in a chunk: two tiles, packed side by side in each step.
inline constexpr int64_t kChunkRows = int64_t{2} * kTileRows;

// Steps [from, from + depth) along K, columns [first, last) of C.
struct GemmBlock {
  int64_t from = 0, depth = 0, first = 0, last = 0;

  int64_t cols() const { return last - first; }
};

// ---- packing ------------------------------------------------------------------------------------

// A block of B to its panels: [depth, vectors · lanes] each, with zeros beyond the last column.
// Several rows at a time, so that memory is read in long streams.
HWY_INLINE void pack_rows_of_b(const Gemm& g, const GemmBlock& b, float* HWY_RESTRICT panels) {
  constexpr int64_t kTogether = 8;
  const FloatTag d;
  for (int64_t l = 0; l < b.depth; l += kTogether) {
    const int64_t steps = std::min(kTogether, b.depth - l);
    for (int64_t col = 0; col < b.cols(); col += panel_cols()) {
      const int64_t cols = std::min(panel_cols(), b.cols() - col);
      const int64_t width = ceil_div(cols, lanes()) * lanes();
      const float* from = g.b + (b.from + l) * g.ldb + b.first + col;
      float* to = panels + col * b.depth + l * width;
      for (int64_t step = 0; step < steps; ++step, from += g.ldb, to += width) {
        for_each_vector(d, cols, [&](int64_t j, auto io) HWY_ATTR {
          hn::Store(io.Load(d, from + j), d, to + j);
        });
      }
    }
  }
}

void pack_block(const Gemm& g, const GemmBlock& b, float* panels) {
  if (!g.transpose_b) return pack_rows_of_b(g, b, panels);
  for (int64_t col = b.first; col < b.last; col += panel_cols()) {
    pack_columns({.w = g.b + col * g.ldb + b.from,
                  .row = g.ldb,
                  .rows = std::min(panel_cols(), b.last - col),
                  .k = b.depth,
                  .prefetch = true},
                 g.n - col, panels + (col - b.first) * b.depth);
  }
}

// Rows [i, i + rows) of a transposed A, [depth, kChunkRows] with zeros beyond the last. An A that is
// not transposed is read in place.
HWY_INLINE void pack_rows(const Gemm& g, const GemmBlock& b, int64_t i, int64_t rows,
                          float* HWY_RESTRICT chunk) {
  const FloatTag d;
  const float* from = g.a + b.from * g.lda + i;
  if (rows == kChunkRows) {
    for (int64_t l = 0; l < b.depth; ++l, from += g.lda, chunk += kChunkRows) {
      for_each_vector(d, kChunkRows, [&](int64_t j, auto io) HWY_ATTR {
        io.Store(io.Load(d, from + j), d, chunk + j);
      });
    }
    return;
  }
  for (int64_t l = 0; l < b.depth; ++l, from += g.lda, chunk += kChunkRows) {
    for (int64_t r = 0; r < kChunkRows; ++r) chunk[r] = r < rows ? from[r] : 0;
  }
}

// ---- tiles --------------------------------------------------------------------------------------

// Cache lines to prefetch, one every few iterations of a tile's loop. All at once they would fill the
// line fill buffers that the panel needs.
struct Ahead {
  const float* at;
  int64_t step = 0;      // floats from line to line
  int64_t every = 1024;  // iterations
};

enum class Start {
  fresh,  // C = the sums
  add,    // C += the sums
  resume  // the sums start at C
};

// A register tile: kTileRows rows of A times a panel.
struct GemmTile {
  const float* a;  // packed, [depth, kChunkRows] from the tile's first row on; or rows
  int64_t a_row;   // from row to row, when not packed
  const float* b;  // [depth, vectors · lanes]
  int64_t depth;
  float* c;
  int64_t c_row;
  Start start;
  Ahead next_a, next_b;
  const float* next_c;  // kTileRows rows of C, c_row apart
};

template <int kVectors, bool kPacked>
HWY_NOINLINE void gemm_tile(const GemmTile& t) {
  const FloatTag d;
  FloatVec sums[kTileRows][kVectors];
  const auto for_each_sum = [&](const auto& body) HEED_INLINE_BODY {
    unrolled<kTileRows>([&](auto r) HEED_INLINE_BODY {
      unrolled<kVectors>(
          [&](auto v) HEED_INLINE_BODY { body(sums[r][v], t.c + r * t.c_row + v * lanes()); });
    });
  };
  if (t.start == Start::resume) {
    for_each_sum([&](FloatVec& sum, const float* c) HEED_INLINE_BODY { sum = hn::LoadU(d, c); });
  } else {
    for_each_sum([&](FloatVec& sum, const float*) HEED_INLINE_BODY { sum = hn::Zero(d); });
  }
  const float* HWY_RESTRICT a[kTileRows];  // for a packed A only the first is used
  unrolled<kTileRows>([&](auto r) HEED_INLINE_BODY { a[r] = t.a + r * t.a_row; });
  const float* HWY_RESTRICT b = t.b;
  const auto add_step = [&](int64_t l, int64_t s) HEED_INLINE_BODY {
    FloatVec columns[kVectors];
    unrolled<kVectors>([&](auto v) HEED_INLINE_BODY {
      columns[v] = hn::Load(d, b + (s * kVectors + v) * lanes());
    });
    unrolled<kTileRows>([&](auto r) HEED_INLINE_BODY {
      const FloatVec element = hn::Set(d, kPacked ? a[0][(l + s) * kChunkRows + r] : a[r][l + s]);
      unrolled<kVectors>([&](auto v) HEED_INLINE_BODY {
        sums[r][v] = hn::MulAdd(element, columns[v], sums[r][v]);
      });
    });
  };
  const float *next_a = t.next_a.at, *next_b = t.next_b.at, *next_c = t.next_c;
  int64_t until_a = t.next_a.every, until_b = t.next_b.every, until_c = 1;
  const int64_t every_c = t.depth / (kTileSteps * kTileRows) + 1;
  int64_t l = 0;
  static_assert(kTileSteps == 4);
  for (; l + kTileSteps <= t.depth; l += kTileSteps, b += kTileSteps * kVectors * lanes()) {
    if (--until_a == 0) {
      __builtin_prefetch(next_a, 0, 2);
      next_a += t.next_a.step, until_a = t.next_a.every;
    }
    if (--until_b == 0) {
      __builtin_prefetch(next_b, 0, 2);
      next_b += t.next_b.step, until_b = t.next_b.every;
    }
    if (--until_c == 0) {
      for (int v = 0; v < kVectors; ++v) hwy::Prefetch(next_c + v * lanes());
      next_c += t.c_row, until_c = every_c;
    }
    add_step(l, 0);
    add_step(l, 1);
    add_step(l, 2);
    add_step(l, 3);
  }
  for (; l < t.depth; ++l, b += kVectors * lanes()) add_step(l, 0);
  if (t.start == Start::add) {
    for_each_sum([&](FloatVec& sum, float* c)
                     HEED_INLINE_BODY { hn::StoreU(hn::Add(hn::LoadU(d, c), sum), d, c); });
  } else {
    for_each_sum([&](FloatVec& sum, float* c) HEED_INLINE_BODY { hn::StoreU(sum, d, c); });
  }
}

template <bool kPacked>
HWY_INLINE void gemm_tile_of(const GemmTile& t, int64_t vectors) {
  switch (vectors) {
    case 1:
      return gemm_tile<1, kPacked>(t);
    case 2:
      return gemm_tile<2, kPacked>(t);
    default:
      if constexpr (kTileVectors > 2) return gemm_tile<3, kPacked>(t);
  }
}

// A tile that is partly outside C: computed whole, in a buffer.
template <bool kPacked>
HWY_NOINLINE void part_of_tile(GemmTile t, int64_t rows, int64_t cols) {
  const int64_t width = panel_cols();
  HWY_ALIGN float whole[kTileRows * kTileVectors * HWY_MAX_BYTES / sizeof(float)] = {};
  float* c = t.c;
  const int64_t c_row = t.c_row;
  for (int64_t r = 0; r < rows && t.start != Start::fresh; ++r) {
    std::copy_n(c + r * c_row, cols, whole + r * width);
  }
  t.c = whole, t.c_row = width, t.next_c = whole;
  // Rows beyond the last repeat the last.
  HWY_ALIGN float last_rows[kPacked ? 1 : kTileRows * kPackedDepth];
  if (!kPacked && rows < kTileRows) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      std::copy_n(t.a + std::min(r, rows - 1) * t.a_row, t.depth, last_rows + r * t.depth);
    }
    t.a = last_rows, t.a_row = t.depth;
  }
  gemm_tile_of<kPacked>(t, ceil_div(cols, lanes()));
  for (int64_t r = 0; r < rows; ++r) std::copy_n(whole + r * width, cols, c + r * c_row);
}

// ---- blocks -------------------------------------------------------------------------------------

// Rows of memory that will be packed next: each tile prefetches one.
struct Upcoming {
  const float* at = nullptr;
  int64_t row = 0;     // from row to row
  int64_t floats = 0;  // of a row
  int64_t rows = 0;    // that are left

  Ahead next(int64_t turns) {
    const Ahead line{
        .at = at, .step = kLineFloats, .every = std::max<int64_t>(turns * kLineFloats / floats, 1)};
    at += row, --rows;
    return line;
  }
};

HWY_INLINE Upcoming upcoming_rows(const Gemm& g, const GemmBlock& b) {
  if (g.transpose_b) {
    return {
        .at = g.b + b.first * g.ldb + b.from, .row = g.ldb, .floats = b.depth, .rows = b.cols()};
  }
  return {.at = g.b + b.from * g.ldb + b.first, .row = g.ldb, .floats = b.cols(), .rows = b.depth};
}

// A chunk of A that a thread multiplies, and the next one, to prefetch.
struct Chunk {
  int64_t i, rows;    // of A
  const float* a;     // packed, or in place
  int64_t next_rows;  // that the thread works on next; 0: none
  int64_t next_i;
};

// A chunk of rows times all panels of a block.
template <bool kPacked>
HWY_INLINE void multiply_chunk(const Gemm& g, const GemmBlock& b, const Chunk& chunk, Start start,
                               const float* panels, Upcoming& upcoming) {
  const int64_t turns = std::max<int64_t>(b.depth / kTileSteps, 1);
  const int64_t row_tiles = ceil_div(chunk.rows, kTileRows);
  const int64_t tiles = ceil_div(b.cols(), panel_cols()) * row_tiles;
  // A transposed A is prefetched step by step, a line of each; else row by row.
  Upcoming next_a{
      .at = g.a + (kPacked ? b.from * g.lda + chunk.next_i : chunk.next_i * g.lda + b.from),
      .row = g.lda,
      .floats = b.depth,
      .rows = chunk.next_rows};
  const int64_t lines = ceil_div(b.depth, tiles);
  int64_t tile = 0;
  for (int64_t col = b.first; col < b.last; col += panel_cols()) {
    const int64_t cols = std::min(panel_cols(), b.last - col);
    for (int64_t r = 0; r < chunk.rows; r += kTileRows, ++tile) {
      GemmTile t{.a = kPacked ? chunk.a + r : chunk.a + r * g.lda,
                 .a_row = kPacked ? 0 : g.lda,
                 .b = panels + (col - b.first) * b.depth,
                 .depth = b.depth,
                 .c = g.c + (chunk.i + r) * g.ldc + col,
                 .c_row = g.ldc,
                 .start = start,
                 .next_a = {chunk.a},
                 .next_b = {panels},
                 .next_c = g.c + (chunk.i + r) * g.ldc + col};
      if (start == Start::resume) {  // this tile has begun with C: the next one will
        t.next_c = r + kTileRows < chunk.rows ? t.c + kTileRows * g.ldc
                                              : g.c + chunk.i * g.ldc + col + cols;
      }
      if (kPacked && chunk.next_rows > 0 && tile * lines < b.depth) {
        t.next_a = {.at = next_a.at + tile * lines * g.lda,
                    .step = g.lda,
                    .every = std::max<int64_t>(turns / lines, 1)};
      } else if (!kPacked && next_a.rows > 0) {
        t.next_a = next_a.next(turns);
      }
      if (upcoming.rows > 0) t.next_b = upcoming.next(turns);
      const int64_t rows = std::min<int64_t>(kTileRows, chunk.rows - r);
      if (rows == kTileRows && cols % lanes() == 0) {
        gemm_tile_of<kPacked>(t, cols / lanes());
      } else {
        part_of_tile<kPacked>(t, rows, cols);
      }
    }
  }
}

// A part of C that one thread computes, from packing to the last sum.
struct Region {
  int64_t first_row, end_row, first_col, end_col;
};

template <bool kPacked>
void multiply_rows_by_block(const Gemm& g, const Region& region, const GemmBlock& b, Start start,
                            const GemmBlock& next, const float* panels) {
  HWY_ALIGN float packed[kPacked ? kPackedDepth * kChunkRows : 1];
  Upcoming upcoming = upcoming_rows(g, next);
  const auto rows_from = [&](int64_t i) { return std::min(kChunkRows, region.end_row - i); };
  for (int64_t i = region.first_row; i < region.end_row; i += kChunkRows) {
    const int64_t next_i = std::min(i + kChunkRows, region.end_row);
    const Chunk chunk{.i = i,
                      .rows = rows_from(i),
                      .a = kPacked ? packed : g.a + i * g.lda + b.from,
                      .next_rows = rows_from(next_i),
                      .next_i = next_i};
    if (kPacked) pack_rows(g, b, i, chunk.rows, packed);
    multiply_chunk<kPacked>(g, b, chunk, start, panels, upcoming);
  }
}

void multiply_region(const Gemm& g, bool ordered, const Region& region, float* panels) {
  const int64_t width = panel_cols(), all = region.end_col - region.first_col;
  const int64_t depth = even_part(g.k, kPackedDepth);
  const int64_t most = kTiledGemmPanelFloats / (depth * width);  // panels at a time
  const int64_t cols = even_part(ceil_div(all, width), most) * width;
  const auto block_at = [&](int64_t first, int64_t from) {
    return GemmBlock{.from = from,
                     .depth = std::min(depth, g.k - from),
                     .first = first,
                     .last = std::min(first + cols, region.end_col)};
  };
  const Start later = ordered ? Start::resume : Start::add;
  for (int64_t first = region.first_col; first < region.end_col; first += cols) {
    for (int64_t from = 0; from < g.k; from += depth) {
      const GemmBlock b = block_at(first, from);
      GemmBlock next;  // nothing after the last
      if (from + depth < g.k) {
        next = block_at(first, from + depth);
      } else if (first + cols < region.end_col) {
        next = block_at(first + cols, 0);
      }
      pack_block(g, b, panels);
      const Start start = g.accumulate || from > 0 ? later : Start::fresh;
      if (g.transpose_a) {
        multiply_rows_by_block<true>(g, region, b, start, next, panels);
      } else {
        multiply_rows_by_block<false>(g, region, b, start, next, panels);
      }
    }
  }
}

// C in rows × cols regions, as many as threads, or more where they are still large. Threads share no
// packed panels, which would be slow to read from another core's cache: with an A that is not packed,
// columns are split; an A that must be packed is split by rows, and each thread packs the shorter B.
class Regions {
 public:
  Regions(const Gemm& g, int64_t threads) : g_(g) {
    constexpr int64_t kLeastCols = 256, kLeastRows = 64;
    const int64_t depth = even_part(g.k, kPackedDepth);
    shares_ = shares_of(g.m, g.n, g.k, threads);
    // The number of parts of `size`: a multiple of `least`, each part at most `most` long.
    const auto parts = [](int64_t least, int64_t size, int64_t most) {
      return ceil_div(std::max(least, ceil_div(size, most)), least) * least;
    };
    if (g.transpose_a) {
      const int64_t rows = std::clamp<int64_t>(g.m / kLeastRows, 1, shares_);
      rows_ = parts(rows, g.m, kRegionRows);
      cols_ = ceil_div(shares_, rows);
    } else {
      const int64_t cols = std::clamp<int64_t>(g.n / kLeastCols, 1, shares_);
      cols_ = parts(cols, g.n, kTiledGemmPanelFloats / depth);
      rows_ = parts(ceil_div(shares_, cols), g.m, kRegionRows);
    }
  }

  int64_t shares() const { return shares_; }
  int64_t count() const { return rows_ * cols_; }
  Region at(int64_t region) const {
    const int64_t row = region % rows_, col = region / rows_;
    return {border(g_.m, row, rows_), border(g_.m, row + 1, rows_), border(g_.n, col, cols_),
            border(g_.n, col + 1, cols_)};
  }

 private:
  static constexpr int64_t kRegionRows = 2048;

  // Regions begin at whole cache lines and tiles.
  static int64_t border(int64_t size, int64_t part, int64_t parts) {
    constexpr int64_t kMultiple = 16;
    return std::min(size, ceil_div(size * part / parts, kMultiple) * kMultiple);
  }

  const Gemm& g_;
  int64_t shares_, rows_, cols_;
};

void tiled_gemm_kernel(ThreadPool& pool, const Gemm& g, bool ordered, float* panels) {
  static_assert(HWY_MAX_BYTES / sizeof(float) * kTileVectors <= kMaxPanelCols);
  const Regions regions(g, pool.threads());
  const int64_t floats = share_floats(g.n, g.k);
  std::atomic<int64_t> dealt{
      0};  // regions that threads have taken; the order does not change a result
  pool.parallel_for(regions.shares(), 1, [&](int64_t share, int64_t) HWY_ATTR {
    int64_t mine;
    while ((mine = dealt.fetch_add(1, std::memory_order_relaxed)) < regions.count()) {
      const Region region = regions.at(mine);
      if (region.first_row == region.end_row || region.first_col == region.end_col) continue;
      multiply_region(g, ordered, region, panels + share * floats);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {
namespace {

bool is_intel_with_avx512() {
#if HWY_ARCH_X86
  static const bool is_it = __builtin_cpu_is("intel") && (hwy::SupportedTargets() & HWY_AVX3) != 0;
  return is_it;
#else
  return false;
#endif
}

}  // namespace

HWY_EXPORT(tiled_gemm_kernel);

int64_t tiled_gemm_scratch_floats(int64_t m, int64_t n, int64_t k, int threads) {
  return shares_of(m, n, k, threads) * share_floats(n, k);
}

void tiled_gemm(ThreadPool& pool, const Gemm& product) {
  const Gemm& p = product;
  const int64_t floats = tiled_gemm_scratch_floats(p.m, p.n, p.k, pool.threads());
  const std::unique_ptr<float, FreeFloats> panels(static_cast<float*>(
      std::aligned_alloc(kLineBytes, static_cast<size_t>(floats) * sizeof(float))));
  if (!panels) throw std::bad_alloc();
  HWY_DYNAMIC_DISPATCH(tiled_gemm_kernel)(pool, product, false, panels.get());
}

void ordered_gemm(ThreadPool& pool, const Gemm& product, float* scratch) {
  HWY_DYNAMIC_DISPATCH(tiled_gemm_kernel)(pool, product, true, scratch);
}

// On Intel CPUs with AVX-512, oneDNN 2.6 reaches 0.6 to 0.75 of the best speed for gradients of
// weights [out, in] with more outputs than inputs. For gradients of inputs it is faster where sums are
// long and there are more rows than columns, and slower elsewhere
// (docs/results/experiments.md, "The tiled product").
bool tiled_gemm_is_faster(const Gemm& g) {
  constexpr int64_t kMinCols = 64, kShortSum = 384;
  if (g.transpose_b || g.n < kMinCols || !is_intel_with_avx512()) return false;
  return g.transpose_a ? g.m > g.n : g.k <= kShortSum || g.n > std::min(g.k, g.m);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
