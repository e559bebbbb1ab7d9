// The tile registers of newer Xeons (AMX): products of bytes, 16 × 16 × 64 of them at a time, eight
// times as fast as the dot products of AVX-512.
//
//   if (has_amx()) {
//     AmxTiles tiles;                        // this thread's, until it goes
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

// Whether this CPU has them, and the system lets this process use them: it is asked once.
bool has_amx();

// Makes the calling thread's tile registers ready, and gives them back.
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
  const std::byte*
      w;  // unsigned, [16 · chunks, 16 words]: four steps along k in a word, w_row bytes apart
  int64_t w_row;
  int64_t chunks;
  // What will be needed next: so many bytes are asked for with every chunk.
  const std::byte* prefetch = nullptr;
  int64_t prefetch_bytes = 0;
};

// sums [16 · tiles, 16] = x · w, exactly. tiles: 1, 2 or 4. Needs AmxTiles.
void amx_matmul(const AmxMatmul& p, int tiles, int32_t* sums);

}  // namespace heed::kernels
