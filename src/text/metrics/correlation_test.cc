#include <gtest/gtest.h>

#include <cmath>

#include "heed/error.h"
#include "heed/metrics.h"

namespace heed {
namespace {

using Numbers = std::vector<double>;

// Values from SciPy's documentation of pearsonr and spearmanr.
TEST(Correlation, Pearson) {
  EXPECT_NEAR(pearson(Numbers{1, 2, 3, 4, 5, 6, 7}, Numbers{10, 9, 2.5, 6, 4, 3, 2}),
              -0.828503883588428, 1e-12);
  EXPECT_NEAR(pearson(Numbers{1, 2, 3}, Numbers{1e9 + 1, 1e9 + 2, 1e9 + 3}), 1, 1e-12);
}

TEST(Correlation, SpearmanSharesRanks) {
  EXPECT_NEAR(spearman(Numbers{1, 2, 3, 4, 5}, Numbers{5, 6, 7, 8, 7}), 0.8207826816681233, 1e-12);
  EXPECT_NEAR(spearman(Numbers{1, 2, 3, 4}, Numbers{1, 10, 100, 1000}), 1, 1e-12);
  EXPECT_NEAR(spearman(Numbers{1, 1, 2}, Numbers{3, 3, 1}), -1, 1e-12);
}

TEST(Correlation, OfAConstantIsNotANumber) {
  EXPECT_TRUE(std::isnan(pearson(Numbers{0.1, 0.1, 0.1}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman(Numbers{1, 2, 3}, Numbers{7, 7, 7})));
}

TEST(Correlation, RejectsInvalidInput) {
  EXPECT_THROW(pearson(Numbers{1, 2}, Numbers{1}), Error);
  EXPECT_THROW(pearson(Numbers{1}, Numbers{1}), Error);
  EXPECT_THROW(spearman(Numbers{1, NAN}, Numbers{1, 2}), Error);
}

}  // namespace
}  // namespace heed
