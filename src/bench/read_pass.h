// Reading as fast as a core can: what a product with one row could at best do with its weight.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::bench {

// Reads `bytes`, a multiple of kReadPiece, from an address that is a multiple of 64, with vectors
// of the machine's width, and asks for what comes later ahead of its turn, as products do. Returns
// a sum of all of it, so that nobody can leave the reading out.
inline constexpr int64_t kReadPiece = 512;
uint64_t read_pass(const std::byte* from, int64_t bytes);

}  // namespace heed::bench
