#include "kernels/matmul/packed_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/matmul/work_split.h"
#include "kernels/rows/convert.h"

namespace heed::kernels {
namespace {

constexpr int kInt8Largest = 127;
constexpr int kInt8Offset = 128;  // what a packed byte has more than its number
constexpr int kInt4Offset = 8;

// To the nearest number of f16.
template <size_t kCount>
void round_to_half(float (&values)[kCount]) {
  uint16_t bits[kCount];
  f32_to_f16(values, bits, kCount);
  f16_to_f32(bits, values, kCount);
}

// The nearest integer, ties to even, of a number below 2^22: what is added leaves no room for
// fractions. (The C library's function would be a call for each number.)
float nearest(float value) {
  constexpr float kNoFractions = 12582912.0f;  // 1.5 · 2^23
  return (value + kNoFractions) - kNoFractions;
}

void narrow_int8(const float* w, int64_t k, int8_t* numbers, float* scale) {
  float largest = 0;
  for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::abs(w[i]));
  *scale = largest / kInt8Largest;
  for (int64_t i = 0; i < k; ++i) {
    const float q = *scale > 0 ? nearest(w[i] / *scale) : 0;
    numbers[i] = static_cast<int8_t>(std::clamp<float>(q, -kInt8Largest, kInt8Largest));
  }
}

float int4_of(float w, float scale) { return nearest(std::clamp(w / scale, -8.0f, 7.0f)); }

// The scale, an f16, that loses least of up to kInt4Group numbers.
float best_int4_scale(const float (&w)[kInt4Group]) {
  float extreme = 0;
  for (const float value : w) {
    if (std::abs(value) > std::abs(extreme)) extreme = value;
  }
  // -8 is one more than 7: the extreme, whichever sign it has, becomes about -8.
  constexpr int kTried = 8;
  constexpr float kStep = 0.1f;
  float scales[2 * kTried + 1];
  for (int i = -kTried; i <= kTried; ++i) {
    scales[i + kTried] = extreme / (-8 + kStep * static_cast<float>(i));
  }
  round_to_half(scales);
  float best = scales[kTried], least = -1;
  for (const float scale : scales) {
    if (scale == 0 || !std::isfinite(scale)) continue;
    float error = 0;
    for (const float value : w) {
      const float lost = value - scale * int4_of(value, scale);
      error += lost * lost;
    }
    if (least < 0 || error < least) best = scale, least = error;
  }
  return best;
}

void narrow_int4(const float* w, int64_t k, uint8_t* numbers, float* scales) {
  std::fill_n(numbers, quantized_row_bytes(WeightType::int4, k), uint8_t{0});
  for (int64_t g = 0; g * kInt4Group < k; ++g) {
    const int64_t begin = g * kInt4Group, count = std::min(kInt4Group, k - begin);
    float group[kInt4Group] = {};
    std::copy_n(w + begin, count, group);
    scales[g] = best_int4_scale(group);
    for (int64_t i = begin; i < begin + count; ++i) {
      const int q = scales[g] != 0 ? static_cast<int>(int4_of(w[i], scales[g])) : 0;
      const int bits = (q + kInt4Offset) << 4 * (i % 2);
      numbers[i / 2] = static_cast<uint8_t>(numbers[i / 2] | bits);
    }
  }
}

// Where a column's numbers and scales are.
struct Column {
  std::byte* numbers;  // of its first step
  int64_t step_bytes;
  std::byte* scales;
  int64_t scale_step_bytes;
};

Column column_of(const PackedWeight& w, const PackedLayout& layout, int64_t row) {
  const int64_t first = row / kPanelCols * kPanelCols, width = layout.width(first);
  std::byte* scales = w.memory + layout.scales_offset();
  if (w.type == WeightType::int4) {
    scales += (first * layout.groups + row - first) * static_cast<int64_t>(sizeof(uint16_t));
  } else {
    scales += row * static_cast<int64_t>(sizeof(float));
  }
  return {.numbers = w.memory + layout.panel_offset(first) + (row - first) * layout.column_bytes,
          .step_bytes = width * layout.column_bytes,
          .scales = scales,
          .scale_step_bytes = width * static_cast<int64_t>(sizeof(uint16_t))};
}

// Numbers that lie side by side, k of them, to a column, and back.
template <size_t kBytes>
void to_column(const std::byte* numbers, int64_t k, const Column& column) {
  for (int64_t l = 0; l < k; ++l) {
    std::memcpy(column.numbers + l * column.step_bytes, numbers + l * kBytes, kBytes);
  }
}
template <size_t kBytes>
void from_column(const Column& column, int64_t k, std::byte* numbers) {
  for (int64_t l = 0; l < k; ++l) {
    std::memcpy(numbers + l * kBytes, column.numbers + l * column.step_bytes, kBytes);
  }
}

void pack_row(const PackedWeight& to, const PackedLayout& layout, int64_t row,
              const std::byte* numbers, const float* scales) {
  const Column column = column_of(to, layout, row);
  const auto at = [&](int64_t step) { return column.numbers + step * column.step_bytes; };
  if (to.type == WeightType::f32) {
    to_column<sizeof(float)>(numbers, to.k, column);
  } else if (to.type == WeightType::f16) {
    to_column<sizeof(uint16_t)>(numbers, to.k, column);
  } else if (to.type == WeightType::int8) {
    for (int64_t l = 0; l < to.k; ++l) {
      at(l / 4)[l % 4] = numbers[l] ^ std::byte{kInt8Offset};  // which adds it
    }
    std::memcpy(column.scales, scales, sizeof(float));
  } else {
    for (int64_t l = 0; l < to.k; ++l) {
      const auto both = static_cast<unsigned>(numbers[l / 2]);
      const unsigned q = both >> 4 * (l % 2) & 15u;
      at(l / 8)[l % 8 / 2] |= static_cast<std::byte>(q << 4 * (l % 2));
    }
    for (int64_t g = 0; g < layout.groups; ++g) {
      uint16_t bits = 0;
      f32_to_f16(scales + g, &bits, 1);
      std::memcpy(column.scales + g * column.scale_step_bytes, &bits, sizeof bits);
    }
  }
}

}  // namespace

PackedLayout::PackedLayout(WeightType type, int64_t n, int64_t k)
    : padded_n(ceil_div(n, kPanelUnit) * kPanelUnit) {
  switch (type) {
    case WeightType::f32:
      steps = k, column_bytes = sizeof(float);
      return;
    case WeightType::f16:
      steps = k, column_bytes = sizeof(uint16_t);
      return;
    case WeightType::int8:
      steps = ceil_div(k, 4), column_bytes = 4;
      return;
    case WeightType::int4:
      groups = ceil_div(k, kInt4Group);
      steps = groups * (kInt4Group / 8), column_bytes = 4;
  }
}

int64_t packed_bytes(WeightType type, int64_t n, int64_t k) {
  const PackedLayout layout(type, n, k);
  const int64_t scales = type == WeightType::int8   ? layout.padded_n * 4
                         : type == WeightType::int4 ? layout.padded_n * layout.groups * 2
                                                    : 0;
  return layout.scales_offset() + scales;
}

int64_t quantized_row_bytes(WeightType type, int64_t k) {
  switch (type) {
    case WeightType::f16:
      return 2 * k;
    case WeightType::int8:
      return k;
    case WeightType::int4:
      return ceil_div(k, 2);
    case WeightType::f32:
      break;
  }
  return 4 * k;
}

int64_t quantized_row_scales(WeightType type, int64_t k) {
  if (type == WeightType::int8) return 1;
  return type == WeightType::int4 ? ceil_div(k, kInt4Group) : 0;
}

void quantize_rows(WeightType type, const FloatRows& from, std::byte* numbers, float* scales) {
  const int64_t row_bytes = quantized_row_bytes(type, from.k),
                row_scales = quantized_row_scales(type, from.k);
  for (int64_t r = 0; r < from.rows; ++r) {
    const float* w = from.values + r * from.k;
    std::byte* to = numbers + r * row_bytes;
    if (type == WeightType::f32) {
      std::memcpy(to, w, static_cast<size_t>(row_bytes));
    } else if (type == WeightType::f16) {
      f32_to_f16(w, reinterpret_cast<uint16_t*>(to), from.k);
    } else if (type == WeightType::int8) {
      narrow_int8(w, from.k, reinterpret_cast<int8_t*>(to), scales + r * row_scales);
    } else {
      narrow_int4(w, from.k, reinterpret_cast<uint8_t*>(to), scales + r * row_scales);
    }
  }
}

void dequantize_row(WeightType type, const std::byte* numbers, const float* scales, int64_t k,
                    float* out) {
  if (type == WeightType::f32) {
    std::memcpy(out, numbers, static_cast<size_t>(k) * sizeof(float));
  } else if (type == WeightType::f16) {
    constexpr int64_t kPiece = 64;
    uint16_t bits[kPiece];  // a file has them at any address
    for (int64_t l = 0; l < k; l += kPiece) {
      const int64_t count = std::min(kPiece, k - l);
      std::memcpy(bits, numbers + 2 * l, static_cast<size_t>(2 * count));
      f16_to_f32(bits, out + l, count);
    }
  } else if (type == WeightType::int8) {
    for (int64_t l = 0; l < k; ++l) {
      out[l] = scales[0] * static_cast<float>(static_cast<int8_t>(numbers[l]));
    }
  } else {
    for (int64_t l = 0; l < k; ++l) {
      const int q = static_cast<int>(static_cast<unsigned>(numbers[l / 2]) >> 4 * (l % 2) & 15u);
      out[l] = scales[l / kInt4Group] * static_cast<float>(q - kInt4Offset);
    }
  }
}

void pack_rows(const PackedWeight& to, int64_t first, int64_t rows, const std::byte* numbers,
               const float* scales) {
  HEED_CHECK(first >= 0 && rows >= 0 && first + rows <= to.n, "pack_rows: rows beyond the weight");
  const PackedLayout layout(to.type, to.n, to.k);
  const int64_t row_bytes = quantized_row_bytes(to.type, to.k),
                row_scales = quantized_row_scales(to.type, to.k);
  for (int64_t r = 0; r < rows; ++r) {
    pack_row(to, layout, first + r, numbers + r * row_bytes,
             row_scales > 0 ? scales + r * row_scales : nullptr);
  }
}

void unpack_quantized_row(const PackedWeight& from, int64_t row, std::byte* numbers,
                          float* scales) {
  HEED_CHECK(row >= 0 && row < from.n, "unpack_quantized_row: no such row");
  const PackedLayout layout(from.type, from.n, from.k);
  const Column column = column_of(from, layout, row);
  const auto at = [&](int64_t step) { return column.numbers + step * column.step_bytes; };
  if (from.type == WeightType::f32) {
    from_column<sizeof(float)>(column, from.k, numbers);
  } else if (from.type == WeightType::f16) {
    from_column<sizeof(uint16_t)>(column, from.k, numbers);
  } else if (from.type == WeightType::int8) {
    for (int64_t l = 0; l < from.k; ++l) {
      const int q = static_cast<int>(at(l / 4)[l % 4]) - kInt8Offset;
      numbers[l] = static_cast<std::byte>(q);
    }
    std::memcpy(scales, column.scales, sizeof(float));
  } else {
    std::fill_n(numbers, quantized_row_bytes(from.type, from.k), std::byte{0});
    for (int64_t l = 0; l < from.k; ++l) {
      const auto both = static_cast<unsigned>(at(l / 8)[l % 8 / 2]);
      const unsigned q = both >> 4 * (l % 2) & 15u;
      numbers[l / 2] |= static_cast<std::byte>(q << 4 * (l % 2));
    }
    for (int64_t g = 0; g < layout.groups; ++g) {
      uint16_t bits = 0;
      std::memcpy(&bits, column.scales + g * column.scale_step_bytes, sizeof bits);
      f16_to_f32(&bits, scales + g, 1);
    }
  }
}

void dequantize_packed_row(const PackedWeight& from, int64_t row, float* out) {
  HEED_CHECK(row >= 0 && row < from.n, "dequantize_packed_row: no such row");
  const PackedLayout layout(from.type, from.n, from.k);
  const Column column = column_of(from, layout, row);
  const auto at = [&](int64_t step) { return column.numbers + step * column.step_bytes; };
  if (from.type == WeightType::f32) {
    from_column<sizeof(float)>(column, from.k, reinterpret_cast<std::byte*>(out));
  } else if (from.type == WeightType::f16) {
    constexpr int64_t kPiece = 64;
    uint16_t bits[kPiece];
    for (int64_t l = 0; l < from.k; l += kPiece) {
      const int64_t count = std::min(kPiece, from.k - l);
      for (int64_t i = 0; i < count; ++i) std::memcpy(bits + i, at(l + i), 2);
      f16_to_f32(bits, out + l, count);
    }
  } else if (from.type == WeightType::int8) {
    float scale = 0;
    std::memcpy(&scale, column.scales, sizeof scale);
    for (int64_t l = 0; l < from.k; ++l) {
      out[l] = scale * static_cast<float>(static_cast<int>(at(l / 4)[l % 4]) - kInt8Offset);
    }
  } else {
    for (int64_t g = 0; g < layout.groups; ++g) {
      uint16_t bits = 0;
      float scale = 0;
      std::memcpy(&bits, column.scales + g * column.scale_step_bytes, sizeof bits);
      f16_to_f32(&bits, &scale, 1);
      for (int64_t l = g * kInt4Group; l < std::min(from.k, (g + 1) * kInt4Group); ++l) {
        const auto both = static_cast<unsigned>(at(l / 8)[l % 8 / 2]);
        const int q = static_cast<int>(both >> 4 * (l % 2) & 15u) - kInt4Offset;
        out[l] = scale * static_cast<float>(q);
      }
    }
  }
}

}  // namespace heed::kernels
