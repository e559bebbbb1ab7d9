// 20 sentences, for the default suite; batch_invariance_slow_test.cc runs 500.
#include "infer/engine/batch_invariance_testing.h"

#include "base/sanitized_testing.h"

namespace heed {
namespace {

TEST(BatchInvariance, BaseShape) {
  if (kSanitized)
    GTEST_SKIP() << "60 M weights are slow under sanitizers; tests/matrix covers them";
  expect_batch_invariance_at_base_shape(20);
}

}  // namespace
}  // namespace heed
