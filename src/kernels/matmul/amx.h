// AMX tiles: matmuls of bytes, 16 × 16 × 64 of them at a time, eight times as fast as VNNI.
//
//   if (has_amx()) {
//     AmxTiles tiles;                        // configures the calling thread
//     amx_matmul({.x = …, .chunks = k / 64}, 4, sums);
//   }
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::kernels {

inline constexpr int64_t kAmxRows = 16;   // of x in a tile
inline constexpr int64_t kAmxCols = 16;   // of y
inline constexpr int64_t kAmxBytes = 64;  // along k
inline constexpr int kAmxMostTiles = 4;

// Whether the CPU has AMX and the operating system permits it. Determined once.
bool has_amx();

// Configures the AMX tiles of the calling thread, and releases them.
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

struct AmxMatmul {
  const int8_t* x;  // [16 · tiles, 64 · chunks], rows x_row bytes apart
  int64_t x_row;
  int64_t x_tile;  // from tile to tile
  // Unsigned, [16 · chunks, 16 words] with four steps along K in a word, rows w_row bytes apart.
  const std::byte* w;
  int64_t w_row;
  int64_t chunks;
  // Memory to prefetch: prefetch_bytes with every chunk.
  const std::byte* prefetch = nullptr;
  int64_t prefetch_bytes = 0;
};

// sums [16 · tiles, 16] = x · w, exactly. tiles: 1, 2 or 4. Needs AmxTiles.
void amx_matmul(const AmxMatmul& p, int tiles, int32_t* sums);

}  // namespace heed::kernels
