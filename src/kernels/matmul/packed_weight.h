// Weights packed into panels, the layout in which packed_matmul.h reads them.
//
//   PackedWeight w{WeightType::int8, out, in, memory};         // packed_bytes(), zeroed, aligned
//   quantize_rows(w.type, {rows, 48, in}, numbers, scales);    // rounds
//   pack_rows(w, 0, 48, numbers, scales);                      // to panels
//   packed_matmul(pool, {.m = …, .w = w, …});
//
// A weight has three forms: f32 rows, quantized rows as in files (numbers row after row, scales
// apart), and packed: outputs side by side in panels, so that a vector of sums needs one load for
// each step. The types and their rows: weight_types.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/weight_types.h"

namespace heed::kernels {

// Outputs side by side in a panel: a whole number of vectors' and register tiles' widths on every
// instruction set. The last panel is as narrow as a multiple of kPanelUnit allows.
inline constexpr int64_t kPanelCols = 48;
inline constexpr int64_t kPanelUnit = 16;

struct PackedWeight {
  WeightType type = WeightType::f32;
  int64_t n = 0, k = 0;         // outputs, inputs
  std::byte* memory = nullptr;  // borrowed; kPackedAlignment

  explicit operator bool() const { return memory != nullptr; }
};

inline constexpr size_t kPackedAlignment = 64;
int64_t packed_bytes(WeightType type, int64_t n, int64_t k);

// ---- quantized rows: what files hold ------------------------------------------------------------

inline int64_t quantized_row_bytes(WeightType type, int64_t k) {
  return weight_type(type).row_bytes(k);
}
inline int64_t quantized_row_scales(WeightType type, int64_t k) {
  return weight_type(type).row_scales(k);
}

struct FloatRows {
  const float* values = nullptr;  // [rows, k]
  int64_t rows = 0, k = 0;
};
// Rounds to the nearest numbers of the type. scales may be null for a type without scales.
void quantize_rows(WeightType type, const FloatRows& from, std::byte* numbers, float* scales);

// The f32 values of a quantized row.  out [k]
void dequantize_row(WeightType type, const std::byte* numbers, const float* scales, int64_t k,
                    float* out);

// ---- packing ------------------------------------------------------------------------------------

// Packs rows [first, first + rows) of W. The memory must have been zero.
void pack_rows(const PackedWeight& to, int64_t first, int64_t rows, const std::byte* numbers,
               const float* scales);
// And back.
void unpack_quantized_row(const PackedWeight& from, int64_t row, std::byte* numbers, float* scales);
// The f32 values of a packed row.  out [k]
void dequantize_packed_row(const PackedWeight& from, int64_t row, float* out);

// ---- the layout, for the kernels ----------------------------------------------------------------
//
// A panel of `width` columns holds, step after step along K:
//   f32   [k][width] f32
//   f16   [k][width] f16
//   bf16  [k][width] bf16
//   int8  [k / 4][width] words of four bytes, q + 128
//   int4  [k / 8][width] words of eight halves of a byte, q + 8; k in whole groups
// Panels follow each other; after them come the scales, for each panel [scales of a row][width].

struct PackedLayout {
  int64_t steps = 0;         // along K in a panel
  int64_t column_bytes = 0;  // of one column of one step
  int64_t groups = 0;        // scales of a column
  int64_t padded_n = 0;      // columns of all panels

  PackedLayout(WeightType type, int64_t n, int64_t k);
  int64_t width(int64_t panel_col) const {  // of the panel that begins there
    return padded_n - panel_col < kPanelCols ? padded_n - panel_col : kPanelCols;
  }
  int64_t panel_offset(int64_t panel_col) const { return panel_col * steps * column_bytes; }
  int64_t scales_offset() const {
    const auto end = padded_n * steps * column_bytes;
    const auto line = static_cast<int64_t>(kPackedAlignment);
    return (end + line - 1) / line * line;
  }
};

}  // namespace heed::kernels
