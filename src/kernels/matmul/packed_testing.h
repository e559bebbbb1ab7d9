// Test support for packed weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "kernels/matmul/packed_weight.h"
#include "kernels/simd/kernel_testing.h"

namespace heed::kernels {

// A weight with its memory, rounded from floats [n, k].
class PackedMatrix {
 public:
  PackedMatrix(WeightType type, int64_t n, int64_t k, const std::vector<float>& values)
      : n_(n),
        k_(k),
        memory_(static_cast<size_t>(packed_bytes(type, n, k))),
        numbers_(static_cast<size_t>(n * quantized_row_bytes(type, k))),
        scales_(static_cast<size_t>(n * quantized_row_scales(type, k))) {
    const auto bytes = static_cast<size_t>(packed_bytes(type, n, k));
    weight_ = {type, n, k, memory_.allocate<std::byte>(bytes)};
    std::fill_n(weight_.memory, bytes, std::byte{0});
    quantize_rows(type, {values.data(), n, k}, numbers_.data(), scales_.data());
    pack_rows(weight_, 0, n, numbers_.data(), scales_.data());
  }

  const PackedWeight& weight() const { return weight_; }
  std::vector<std::byte> numbers(int64_t row) const { return part(numbers_, row); }
  std::vector<float> scales(int64_t row) const { return part(scales_, row); }
  // Dequantized, [n, k].
  std::vector<float> floats() const {
    std::vector<float> values(static_cast<size_t>(n_ * k_));
    for (int64_t row = 0; row < n_; ++row)
      dequantize_packed_row(weight_, row, values.data() + row * k_);
    return values;
  }

 private:
  template <class T>
  std::vector<T> part(const std::vector<T>& all, int64_t row) const {
    const auto size = static_cast<int64_t>(all.size()) / n_;
    return {all.begin() + row * size, all.begin() + (row + 1) * size};
  }

  int64_t n_, k_;
  Arena memory_;
  std::vector<std::byte> numbers_;
  std::vector<float> scales_;
  PackedWeight weight_;
};

}  // namespace heed::kernels
