// Counts every C++ allocation of a test's program: for one *_test.cc of a binary to include.
//
//   const int64_t before = allocations;
//   step();
//   EXPECT_EQ(allocations - before, 0);
//
// Memory that a library takes from malloc directly (oneDNN's buffers) is not counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};

void* counted(size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}
}  // namespace

// All forms: a sanitizer reports memory from its operator new that our operator delete frees.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (void* p = counted(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<size_t>(alignment);
  if (void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
