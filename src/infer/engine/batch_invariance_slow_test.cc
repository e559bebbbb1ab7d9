// 500 sentences. Minutes long, because one at a time every decode step reads all weights for one row.
#include "infer/engine/batch_invariance_testing.h"

namespace heed {
namespace {

TEST(BatchInvarianceSlow, BaseShape500Sentences) { expect_batch_invariance_at_base_shape(500); }

}  // namespace
}  // namespace heed
