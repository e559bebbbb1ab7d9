// Numbers inside files. Every format read here is little-endian, as is every machine Heed runs on.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace heed {

static_assert(std::endian::native == std::endian::little,
              "tensor files are used in place, so the machine must be little-endian");

// The T that starts at `bytes`, at any alignment; the caller has checked that it is all there.
template <class T>
T load_little_endian(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace heed
