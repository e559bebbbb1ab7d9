// The greatest number of each run of a row: to look for the few large ones of a long row, such as
// the scores of a vocabulary, without comparing all of them one by one.
#pragma once

#include <cstdint>

namespace heed::kernels {

inline constexpr int64_t kMaximaRun = 64;

// maxima[i] is the greatest of x[64 i … 64 i + 63], for each of `runs` runs. NaN never is: a run of
// nothing else has -infinity.
void run_maxima(const float* x, int64_t runs, float* maxima);

}  // namespace heed::kernels
