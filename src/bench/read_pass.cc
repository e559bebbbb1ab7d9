#include "bench/read_pass.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/read_pass.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

uint64_t read_pass_kernel(const std::byte* from, int64_t bytes) {
  constexpr int64_t kLine = 64, kAhead = 4608;
  const hn::CappedTag<uint64_t, kLine / sizeof(uint64_t)> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t vector = lanes * static_cast<int64_t>(sizeof(uint64_t));
  auto even = hn::Zero(d), odd = even;
  for (int64_t i = 0; i < bytes; i += kReadPiece) {
    for (int64_t line = 0; line < kReadPiece; line += 2 * kLine) {
      hwy::Prefetch(from + i + line + kAhead);
      hwy::Prefetch(from + i + line + kLine + kAhead);
      for (int64_t at = i + line; at < i + line + kLine; at += vector) {
        const auto* first = reinterpret_cast<const uint64_t*>(from + at);
        even = hn::Add(even, hn::Load(d, first));
        odd = hn::Add(odd, hn::Load(d, first + kLine / sizeof(uint64_t)));
      }
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::bench {

HWY_EXPORT(read_pass_kernel);

uint64_t read_pass(const std::byte* from, int64_t bytes) {
  return HWY_DYNAMIC_DISPATCH(read_pass_kernel)(from, bytes);
}

}  // namespace heed::bench
#endif  // HWY_ONCE
