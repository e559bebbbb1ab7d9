// Weights laid out for products with rows, most of them in fewer bytes: f32, f16, int8, int4.
//
//   PackedWeight w{WeightType::int8, out, in, memory};   // packed_bytes() of it, zeroed, aligned
//   quantize_rows(w.type, {rows, 48, in}, numbers, scales);  // rounds
//   pack_rows(w, 0, 48, numbers, scales);                // lays out
//   packed_matmul(pool, {…, .w = w, …});                // kernels/matmul/packed_matmul.h
//
// What the types mean, for a row (an output) of W [out, in]:
//
//   f32   the number itself
//   f16   the number itself, rounded
//   int8  q · scale, q in -127 … 127, one scale a row
//   int4  q · scale, q in -8 … 7, one scale for each kInt4Group inputs; scales are f16 numbers, so
//         that q · scale is a float exactly
//
// "Narrow rows" are the form of files: row after row, f32, f16 bits, int8, or two int4 in a byte
// (q + 8, the lower half first), and the scales apart. "Packed" is the form in memory: columns of
// the product side by side in panels, so that one vector of sums needs one load a step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::kernels {

enum class WeightType { f32, f16, int8, int4 };

inline constexpr int64_t kInt4Group = 32;
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

// ---- narrow rows: what files hold ---------------------------------------------------------------

int64_t quantized_row_bytes(WeightType type, int64_t k);
int64_t quantized_row_scales(WeightType type, int64_t k);  // 0 for f32 and f16

struct FloatRows {
  const float* values = nullptr;  // [rows, k]
  int64_t rows = 0, k = 0;
};
// Rounds to the nearest numbers of the type; for int4 with the scale of least squared error.
void quantize_rows(WeightType type, const FloatRows& from, std::byte* numbers, float* scales);

// The floats that a narrow row stands for.  out [k]
void dequantize_row(WeightType type, const std::byte* numbers, const float* scales, int64_t k,
                    float* out);

// ---- packing ------------------------------------------------------------------------------------

// Puts rows [first, first + rows) of W into their places. The memory must have been zero.
void pack_rows(const PackedWeight& to, int64_t first, int64_t rows, const std::byte* numbers,
               const float* scales);
// And back.
void unpack_quantized_row(const PackedWeight& from, int64_t row, std::byte* numbers, float* scales);
// The floats that a product works with: q · scale, or the number.  out [k]
void dequantize_packed_row(const PackedWeight& from, int64_t row, float* out);

// ---- the layout, for the kernels ----------------------------------------------------------------
//
// A panel of `width` columns holds, step after step along k (units of step_inputs inputs):
//   f32   [k][width] f32
//   f16   [k][width] f16
//   int8  [k / 4][width] words of four bytes, q + 128
//   int4  [k / 8][width] words of eight halves of a byte, q + 8; k in whole groups
// Panels follow each other; after them come the scales: f32 [n] for int8, and for int4 f16
// [k / 32][width] of each panel.

struct PackedLayout {
  int64_t steps = 0;         // units along k in a panel
  int64_t column_bytes = 0;  // of one column of one unit
  int64_t groups = 0;        // int4
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
