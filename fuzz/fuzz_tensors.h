// What a reader of tensors must guarantee for any input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "heed/error.h"
#include "model/files/tensor_file.h"

namespace heed::fuzz {

// A rejected file is fine; Error(internal) is a bug.
inline void expect_ordinary(const Error& error) {
  if (error.code() == ErrorCode::internal) std::abort();
}

// Reads every byte of every tensor, as a loader would.
inline void use(const TensorTable& table) {
  for (const TensorView& tensor : table.tensors) {
    const auto count = static_cast<size_t>(tensor.element_count());
    if (count * element_bytes(tensor.dtype) != tensor.bytes.size()) std::abort();
    try {
      std::vector<float> values(count);
      copy_as_f32(tensor, values.data());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) std::abort();
    }
    // Also of integer tensors.
    volatile unsigned sum = 0;
    for (const std::byte byte : tensor.bytes) sum = sum + std::to_integer<unsigned>(byte);
  }
}

}  // namespace heed::fuzz
