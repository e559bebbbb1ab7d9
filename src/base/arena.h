// Arena: a bump allocator that owns all temporary buffers of a step.
//
// Allocating moves a cursor, freeing rewinds it to a mark, so a step allocates nothing from the
// heap. A *measuring* arena returns no memory and only counts, which gives the peak of a step
// before it runs:
//
//   Arena plan = Arena::measuring();
//   step(plan);                         // dry run: kernels are skipped, see ops/ctx.h
//   Arena arena(plan.peak_bytes());     // exactly enough
//
// Not thread-safe: one arena belongs to one step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed {

class Arena {
 public:
  // A position of the cursor; valid until an earlier mark is rewound to.
  struct Mark {
    size_t offset;
  };

  static constexpr size_t kAlignment = 64;  // one cache line, and one AVX-512 vector

  // Reserves `bytes` (rounded up to kAlignment) of address space; pages cost memory when first
  // touched. Throws out_of_memory when the address space is exhausted.
  explicit Arena(size_t bytes);
  static Arena measuring();

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // Uninitialised memory for `count` Ts, aligned to kAlignment. Null while measuring (a
  // distinct non-null address is not promised). Throws out_of_memory when the arena is full.
  template <class T>
  T* allocate(size_t count) {
    return static_cast<T*>(allocate_bytes(count, sizeof(T)));
  }

  Mark mark() const { return {used_}; }
  void rewind(Mark mark);

  bool is_measuring() const { return measuring_; }
  size_t used_bytes() const { return used_; }
  size_t peak_bytes() const { return peak_; }
  size_t capacity_bytes() const { return capacity_; }

 private:
  Arena() = default;
  void* allocate_bytes(size_t count, size_t size);

  std::byte* base_ = nullptr;
  size_t capacity_ = 0, used_ = 0, peak_ = 0;
  bool measuring_ = false;
};

}  // namespace heed
