#include "kernels/rows/maxima.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/maxima.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
// foreach_target.h comes before highway.h and what includes it.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void run_maxima_kernel(const float* x, int64_t runs, float* maxima) {
  const hn::CappedTag<float, kMaximaRun> d;  // its lanes divide a run
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t run = 0; run < runs; ++run) {
    auto greatest = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (int64_t i = 0; i < kMaximaRun; i += lanes) {
      const auto v = hn::LoadU(d, x + run * kMaximaRun + i);
      // Not Max, which lets NaN through on some machines.
      greatest = hn::IfThenElse(hn::Gt(v, greatest), v, greatest);
    }
    maxima[run] = hn::GetLane(hn::MaxOfLanes(d, greatest));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(run_maxima_kernel);

void run_maxima(const float* x, int64_t runs, float* maxima) {
  HWY_DYNAMIC_DISPATCH(run_maxima_kernel)(x, runs, maxima);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
