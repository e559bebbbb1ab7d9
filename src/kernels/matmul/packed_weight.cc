#include "kernels/matmul/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/matmul/work_split.h"
#include "kernels/rows/convert.h"

namespace heed::kernels {
namespace {

// Where a row of W is in a packed weight.
struct PackedRow {
  PackedColumn column;
  std::byte* scales;
  int64_t scale_step_bytes;  // from one scale to the next
};

PackedRow packed_row(const PackedWeight& w, const PackedLayout& layout, int64_t row) {
  const int64_t first = row / kPanelCols * kPanelCols, width = layout.width(first);
  const int64_t scale_bytes = weight_type(w.type).scale_bytes;
  return {.column = {.numbers = w.memory + layout.panel_offset(first) +
                                (row - first) * layout.column_bytes,
                     .step_bytes = width * layout.column_bytes},
          .scales = w.memory + layout.scales_offset() +
                    (first * layout.groups + row - first) * scale_bytes,
          .scale_step_bytes = width * scale_bytes};
}

// Scales [first, first + count) of a row, f32 or f16, to and from f32.
void pack_scales(const PackedRow& row, int64_t scale_bytes, int64_t count, const float* scales) {
  for (int64_t g = 0; g < count; ++g) {
    std::byte* to = row.scales + g * row.scale_step_bytes;
    uint16_t bits = 0;
    if (scale_bytes == sizeof bits) {
      f32_to_f16(scales + g, &bits, 1);
      std::memcpy(to, &bits, sizeof bits);
    } else {
      std::memcpy(to, scales + g, sizeof(float));
    }
  }
}
void unpack_scales(const PackedRow& row, int64_t scale_bytes, int64_t first, int64_t count,
                   float* scales) {
  for (int64_t g = 0; g < count; ++g) {
    const std::byte* from = row.scales + (first + g) * row.scale_step_bytes;
    uint16_t bits = 0;
    if (scale_bytes == sizeof bits) {
      std::memcpy(&bits, from, sizeof bits);
      f16_to_f32(&bits, scales + g, 1);
    } else {
      std::memcpy(scales + g, from, sizeof(float));
    }
  }
}

}  // namespace

PackedLayout::PackedLayout(WeightType type, int64_t n, int64_t k)
    : padded_n(ceil_div(n, kPanelUnit) * kPanelUnit) {
  const WeightTypeInfo& info = weight_type(type);
  // Inputs that share a scale are whole steps.
  const int64_t inputs =
      info.scale_inputs > 0 ? ceil_div(k, info.scale_inputs) * info.scale_inputs : k;
  steps = ceil_div(inputs, info.step_inputs);
  column_bytes = info.step_bytes;
  groups = info.row_scales(k);
}

int64_t packed_bytes(WeightType type, int64_t n, int64_t k) {
  const PackedLayout layout(type, n, k);
  return layout.scales_offset() + layout.padded_n * layout.groups * weight_type(type).scale_bytes;
}

void quantize_rows(WeightType type, const FloatRows& from, std::byte* numbers, float* scales) {
  const WeightTypeInfo& info = weight_type(type);
  const int64_t row_bytes = info.row_bytes(from.k), row_scales = info.row_scales(from.k);
  for (int64_t r = 0; r < from.rows; ++r) {
    info.quantize(from.values + r * from.k, from.k, numbers + r * row_bytes,
                  row_scales > 0 ? scales + r * row_scales : nullptr);
  }
}

void dequantize_row(WeightType type, const std::byte* numbers, const float* scales, int64_t k,
                    float* out) {
  weight_type(type).dequantize(numbers, scales, k, out);
}

void pack_rows(const PackedWeight& to, int64_t first, int64_t rows, const std::byte* numbers,
               const float* scales) {
  HEED_CHECK(first >= 0 && rows >= 0 && first + rows <= to.n,
             "pack_rows: rows must be within the weight");
  const WeightTypeInfo& info = weight_type(to.type);
  const PackedLayout layout(to.type, to.n, to.k);
  const int64_t row_bytes = info.row_bytes(to.k);
  for (int64_t r = 0; r < rows; ++r) {
    const PackedRow row = packed_row(to, layout, first + r);
    info.pack(numbers + r * row_bytes, to.k, row.column);
    if (layout.groups > 0) {
      pack_scales(row, info.scale_bytes, layout.groups, scales + r * layout.groups);
    }
  }
}

void unpack_quantized_row(const PackedWeight& from, int64_t row, std::byte* numbers,
                          float* scales) {
  HEED_CHECK(row >= 0 && row < from.n, "unpack_quantized_row: the row must be within the weight");
  const WeightTypeInfo& info = weight_type(from.type);
  const PackedLayout layout(from.type, from.n, from.k);
  const PackedRow packed = packed_row(from, layout, row);
  info.unpack(packed.column, from.k, numbers);
  unpack_scales(packed, info.scale_bytes, 0, layout.groups, scales);
}

void dequantize_packed_row(const PackedWeight& from, int64_t row, float* out) {
  HEED_CHECK(row >= 0 && row < from.n, "dequantize_packed_row: the row must be within the weight");
  const WeightTypeInfo& info = weight_type(from.type);
  const PackedLayout layout(from.type, from.n, from.k);
  const PackedRow packed = packed_row(from, layout, row);
  // Some inputs at a time, whole steps and groups: embeddings are looked up without an allocation.
  constexpr int64_t kPiece = 256, kMaxBytes = 4, kMinScaleInputs = 16;
  std::byte numbers[kPiece * kMaxBytes];
  float scales[kPiece / kMinScaleInputs] = {};
  for (int64_t l = 0; l < from.k; l += kPiece) {
    const int64_t count = std::min(kPiece, from.k - l);
    const PackedColumn column{
        packed.column.numbers + l / info.step_inputs * packed.column.step_bytes,
        packed.column.step_bytes};
    info.unpack(column, count, numbers);
    if (info.scale_inputs > 0) {
      unpack_scales(packed, info.scale_bytes, l / info.scale_inputs, info.row_scales(count),
                    scales);
    } else if (l == 0) {
      unpack_scales(packed, info.scale_bytes, 0, layout.groups, scales);
    }
    info.dequantize(numbers, scales, count, out + l);
  }
}

}  // namespace heed::kernels
