#include "base/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "heed/error.h"

namespace heed {
namespace {

using testing::HasSubstr;

constexpr size_t kHuge = std::numeric_limits<size_t>::max();

bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % Arena::kAlignment == 0;
}

// A step in miniature: odd sizes, an empty buffer, nested marks, and a peak in the middle.
void step(Arena& arena) {
  arena.allocate<float>(3);
  arena.allocate<double>(0);
  const Arena::Mark outer = arena.mark();
  arena.allocate<char>(65);
  const Arena::Mark inner = arena.mark();
  arena.allocate<uint16_t>(1001);
  arena.rewind(inner);
  arena.allocate<float>(7);
  arena.rewind(outer);
  arena.allocate<char>(1);
}

template <class Function>
std::string out_of_memory_message(Function function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    return error.what();
  }
  ADD_FAILURE() << "did not throw";
  return {};
}

TEST(Arena, BuffersAreAlignedDisjointAndWritable) {
  Arena arena(4096);
  float* a = arena.allocate<float>(5);
  double* b = arena.allocate<double>(9);
  char* c = arena.allocate<char>(1);
  EXPECT_TRUE(is_aligned(a) && is_aligned(b) && is_aligned(c));
  std::memset(a, 1, 5 * sizeof(float));
  std::memset(b, 2, 9 * sizeof(double));
  *c = 3;
  EXPECT_EQ(reinterpret_cast<char*>(a)[5 * sizeof(float) - 1], 1);
  EXPECT_EQ(reinterpret_cast<char*>(b)[0], 2);
  EXPECT_EQ(arena.used_bytes(), 64u + 128u + 64u);
}

TEST(Arena, RewindReusesTheMemory) {
  Arena arena(1024);
  arena.allocate<float>(1);
  const Arena::Mark mark = arena.mark();
  float* first = arena.allocate<float>(16);
  arena.rewind(mark);
  EXPECT_EQ(arena.allocate<float>(16), first);
  EXPECT_EQ(arena.peak_bytes(), 128u);
}

TEST(Arena, RewindForwardIsAnInternalError) {
  Arena arena(1024);
  const Arena::Mark start = arena.mark();
  arena.allocate<float>(1);
  const Arena::Mark later = arena.mark();
  arena.rewind(start);
  EXPECT_THROW(arena.rewind(later), Error);
}

TEST(Arena, MeasuredPeakIsExactlyEnough) {
  Arena plan = Arena::measuring();
  step(plan);
  EXPECT_TRUE(plan.is_measuring());

  Arena arena(plan.peak_bytes());
  EXPECT_EQ(arena.capacity_bytes(), plan.peak_bytes());
  EXPECT_NO_THROW(step(arena));
  EXPECT_EQ(arena.peak_bytes(), plan.peak_bytes());
  EXPECT_EQ(arena.used_bytes(), plan.used_bytes());

  Arena smaller(plan.peak_bytes() - Arena::kAlignment);
  EXPECT_THROW(step(smaller), Error);
}

TEST(Arena, MeasuringReturnsNull) {
  Arena plan = Arena::measuring();
  EXPECT_EQ(plan.allocate<float>(size_t{1} << 50), nullptr);
  EXPECT_EQ(plan.peak_bytes(), size_t{1} << 52);
}

TEST(Arena, WhenFullNamesNeededBytesAndCapacity) {
  Arena arena(256);
  arena.allocate<char>(200);
  const std::string message = out_of_memory_message([&] { arena.allocate<float>(100); });
  EXPECT_THAT(message, HasSubstr("704 bytes are needed"));
  EXPECT_THAT(message, HasSubstr("capacity is 256 bytes"));
  // A failed allocation leaves the arena unchanged.
  EXPECT_EQ(arena.used_bytes(), 256u);
  EXPECT_EQ(arena.peak_bytes(), 256u);
}

void expect_overflow_is_refused(Arena arena) {
  arena.allocate<char>(1);
  EXPECT_THAT(out_of_memory_message([&] { arena.allocate<double>(kHuge / 4); }),
              HasSubstr("exceeds the address space"));
  out_of_memory_message([&] { arena.allocate<char>(kHuge); });       // overflows by rounding
  out_of_memory_message([&] { arena.allocate<char>(kHuge - 63); });  // … and by adding
  EXPECT_EQ(arena.used_bytes(), 64u);
}

TEST(Arena, RejectsSizesThatOverflow) {
  expect_overflow_is_refused(Arena(1024));
  expect_overflow_is_refused(Arena::measuring());
  out_of_memory_message([] { Arena arena(kHuge); });
  EXPECT_THAT(out_of_memory_message([] { Arena arena(kHuge / 2); }), HasSubstr("cannot reserve"));
}

TEST(Arena, EmptyArenaAllocatesEmptyBuffers) {
  Arena arena(0);
  EXPECT_NO_THROW(arena.allocate<float>(0));
  EXPECT_THROW(arena.allocate<float>(1), Error);
}

TEST(Arena, ReservingTouchesNoPages) {
  // 256 GB, more than most machines have: only touched pages cost memory.
  Arena arena(size_t{1} << 38);
  char* bytes = arena.allocate<char>(1 << 20);
  bytes[0] = 1;
  bytes[(1 << 20) - 1] = 2;
  EXPECT_EQ(bytes[0] + bytes[(1 << 20) - 1], 3);
}

#if defined(__SANITIZE_ADDRESS__) && GTEST_HAS_DEATH_TEST
TEST(ArenaDeathTest, AddressSanitizerSeesOverrunsAndStaleBuffers) {
  Arena arena(1024);
  volatile char* before = arena.allocate<char>(60);
  const Arena::Mark mark = arena.mark();
  volatile char* stale = arena.allocate<char>(64);
  EXPECT_DEATH(before[60] = 1, "AddressSanitizer");
  EXPECT_DEATH(stale[64] = 1, "AddressSanitizer");
  arena.rewind(mark);
  EXPECT_DEATH(stale[0] = 1, "AddressSanitizer");
}
#endif

TEST(Arena, MovesKeepTheMemory) {
  Arena first(1024);
  int* number = first.allocate<int>(1);
  *number = 42;
  Arena second(std::move(first));
  EXPECT_EQ(*number, 42);
  Arena third(64);
  third = std::move(second);
  EXPECT_EQ(*number, 42);
  EXPECT_EQ(third.used_bytes(), 64u);
  EXPECT_EQ(third.capacity_bytes(), 1024u);
}

}  // namespace
}  // namespace heed
