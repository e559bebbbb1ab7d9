#include "kernels/matmul/amx.h"

#include "base/check.h"
#include "kernels/matmul/work_split.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace heed::kernels {
namespace {

bool cpu_has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24, kBytes = 1u << 25, kXsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kXsave)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d & kTiles) == 0 || (d & kBytes) == 0) return false;
  // Whether the operating system saves the tile state on a context switch.
  uint32_t low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr uint32_t kTileState = 3u << 17;
  return (low & kTileState) == kTileState;
}

// Linux saves the 8 KB of tile state only for processes that requested it.
bool system_allows_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// What ldtilecfg reads.
struct alignas(64) TileSetup {
  uint8_t palette = 1;
  uint8_t first_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileSetup) == 64);

// Inline assembly: intrinsics would need extra compiler flags. Tiles 0 to 3 are sums, 4 to 6 rows of
// x, 7 columns of w.
#define HEED_TILE_ZERO(t) asm volatile("tilezero %%tmm" #t ::: "memory")
#define HEED_TILE_LOAD(t, from, row) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"(row) : "memory")
#define HEED_TILE_STORE(t, to, row) \
  asm volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(row) : "memory")
// Signed bytes of x, unsigned ones of w.
#define HEED_TILE_DOT(sums, x, w) \
  asm volatile("tdpbsud %%tmm" #w ", %%tmm" #x ", %%tmm" #sums ::: "memory")

template <int kTiles>
void multiply(const AmxMatmul& p, int32_t* sums) {
  constexpr int64_t kSumsRow = kAmxCols * sizeof(int32_t), kTileSums = kAmxRows * kAmxCols;
  HEED_TILE_ZERO(0);
  if constexpr (kTiles > 1) HEED_TILE_ZERO(1);
  if constexpr (kTiles > 2) {
    HEED_TILE_ZERO(2);
    HEED_TILE_ZERO(3);
  }
  const int8_t* x = p.x;
  const std::byte *w = p.w, *prefetch = p.prefetch;
  for (int64_t c = 0; c < p.chunks; ++c, x += kAmxBytes, w += kAmxRows * p.w_row) {
    prefetch_l2(prefetch, p.prefetch_bytes);
    prefetch += p.prefetch_bytes;
    HEED_TILE_LOAD(7, w, p.w_row);
    HEED_TILE_LOAD(4, x, p.x_row);
    HEED_TILE_DOT(0, 4, 7);
    if constexpr (kTiles > 1) {
      HEED_TILE_LOAD(5, x + p.x_tile, p.x_row);
      HEED_TILE_DOT(1, 5, 7);
    }
    if constexpr (kTiles > 2) {
      HEED_TILE_LOAD(6, x + 2 * p.x_tile, p.x_row);
      HEED_TILE_DOT(2, 6, 7);
      HEED_TILE_LOAD(4, x + 3 * p.x_tile, p.x_row);
      HEED_TILE_DOT(3, 4, 7);
    }
  }
  HEED_TILE_STORE(0, sums, kSumsRow);
  if constexpr (kTiles > 1) HEED_TILE_STORE(1, sums + kTileSums, kSumsRow);
  if constexpr (kTiles > 2) {
    HEED_TILE_STORE(2, sums + 2 * kTileSums, kSumsRow);
    HEED_TILE_STORE(3, sums + 3 * kTileSums, kSumsRow);
  }
}

}  // namespace

bool has_amx() {
  static const bool usable = cpu_has_amx() && system_allows_amx();
  return usable;
}

AmxTiles::AmxTiles() {
  TileSetup setup;
  for (int t = 0; t < 8; ++t) {
    setup.row_bytes[t] = kAmxBytes;
    setup.rows[t] = kAmxRows;
  }
  asm volatile("ldtilecfg %0" ::"m"(setup));
}

AmxTiles::~AmxTiles() { asm volatile("tilerelease"); }

void amx_matmul(const AmxMatmul& p, int tiles, int32_t* sums) {
  switch (tiles) {
    case 1:
      return multiply<1>(p, sums);
    case 2:
      return multiply<2>(p, sums);
    default:
      HEED_DCHECK(tiles == kAmxMostTiles, "amx_matmul: tiles must be 1, 2 or 4");
      return multiply<kAmxMostTiles>(p, sums);
  }
}

}  // namespace heed::kernels

#else  // other machines, other systems

namespace heed::kernels {

bool has_amx() { return false; }
AmxTiles::AmxTiles() = default;
AmxTiles::~AmxTiles() = default;
void amx_matmul(const AmxMatmul&, int, int32_t*) {
  HEED_CHECK(false, "amx_matmul: the CPU must have AMX");
}

}  // namespace heed::kernels

#endif
