#include "base/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

// Under AddressSanitizer the bytes between buffers, those after the newest, and rewound buffers are
// poisoned, so an overrun or a stale pointer is reported although the page is mapped. Not the whole
// block: its shadow would be resident, while the block is only reserved.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEED_ARENA_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HEED_ARENA_POISONS 1
#endif
#ifdef HEED_ARENA_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace heed {

namespace {

constexpr size_t kMax = std::numeric_limits<size_t>::max();

void poison([[maybe_unused]] std::byte* begin, [[maybe_unused]] size_t bytes) {
#ifdef HEED_ARENA_POISONS
  if (bytes > 0) ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}

void unpoison([[maybe_unused]] std::byte* begin, [[maybe_unused]] size_t bytes) {
#ifdef HEED_ARENA_POISONS
  if (bytes > 0) ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}

bool can_round_up(size_t bytes) { return bytes <= kMax - (Arena::kAlignment - 1); }

size_t round_up(size_t bytes) {
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

[[noreturn]] void throw_too_large(size_t count, size_t size) {
  throw Error(ErrorCode::out_of_memory, "a buffer of " + std::to_string(count) + " elements of " +
                                            std::to_string(size) +
                                            " bytes exceeds the address space");
}

std::byte* map_block(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory,
                "cannot reserve " + std::to_string(bytes) +
                    " bytes of memory: " + std::generic_category().message(errno),
                "use smaller batches, or a machine with more memory");
  }
#ifdef MADV_HUGEPAGE
  // Pages of 2 MB instead of 4 kB: rows far apart (a matrix walked by columns, the heads of one
  // sequence) then seldom miss the TLB. Measured on a 256 MB block: a walk with a stride of 8 kB
  // takes about 0.6 of the time, streaming the same. Advisory, so its failure is ignored.
  madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(block);
}

// `touched` bytes may be poisoned: a later mapping at these addresses must not be.
void unmap_block(std::byte* block, size_t bytes, size_t touched) {
  if (block == nullptr) return;
  unpoison(block, touched);
  munmap(block, bytes);
}

}  // namespace

Arena::Arena(size_t bytes) {
  if (!can_round_up(bytes)) throw_too_large(bytes, 1);
  const size_t rounded = round_up(bytes);
  base_ = map_block(rounded);
  capacity_ = rounded;
}

Arena Arena::measuring() {
  Arena arena;
  arena.measuring_ = true;
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, 0)),
      peak_(std::exchange(other.peak_, 0)),
      measuring_(std::exchange(other.measuring_, false)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    unmap_block(base_, capacity_, std::min(capacity_, peak_ + kAlignment));
    base_ = std::exchange(other.base_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
    used_ = std::exchange(other.used_, 0);
    peak_ = std::exchange(other.peak_, 0);
    measuring_ = std::exchange(other.measuring_, false);
  }
  return *this;
}

Arena::~Arena() { unmap_block(base_, capacity_, std::min(capacity_, peak_ + kAlignment)); }

void Arena::rewind(Mark mark) {
  HEED_CHECK(mark.offset <= used_, "an arena must be rewound to a mark that is still valid");
  if (!measuring_) poison(base_ + mark.offset, used_ - mark.offset);
  used_ = mark.offset;
}

void* Arena::allocate_bytes(size_t count, size_t size) {
  if (count > kMax / size || !can_round_up(count * size)) throw_too_large(count, size);
  const size_t bytes = count * size;
  const size_t rounded = round_up(bytes);
  if (rounded > kMax - used_) throw_too_large(count, size);
  const size_t needed = used_ + rounded;
  if (!measuring_ && needed > capacity_) {
    throw Error(ErrorCode::out_of_memory,
                "the arena is too small: " + std::to_string(needed) + " bytes are needed (" +
                    std::to_string(used_) + " in use and " + std::to_string(rounded) +
                    " more), its capacity is " + std::to_string(capacity_) + " bytes",
                "allow more memory, or use smaller batches");
  }
  std::byte* const begin = measuring_ ? nullptr : base_ + used_;
  used_ = needed;
  peak_ = std::max(peak_, used_);
  if (!measuring_) {
    unpoison(begin, bytes);
    poison(begin + bytes, rounded - bytes + std::min(kAlignment, capacity_ - needed));
  }
  return begin;
}

}  // namespace heed
