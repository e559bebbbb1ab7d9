// Reading as fast as a core can: the limit of a GEMV.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::bench {

// Reads `bytes`, a multiple of kReadPiece, from an address that is a multiple of 64, with vectors
// of the machine's width and prefetch, as the GEMV does. Returns a sum of all of it, so that the
// compiler cannot remove the reads.
inline constexpr int64_t kReadPiece = 512;
uint64_t read_pass(const std::byte* from, int64_t bytes);

}  // namespace heed::bench
