#include "text/metrics/metric_signature.h"

#include <gtest/gtest.h>

#include "heed/error.h"

namespace heed {
namespace {

TEST(MetricSignature, NamesReferencesFieldsAndVersion) {
  EXPECT_EQ(metric_signature({{"a", "b"}, {"c", "d"}}, {{"case", "lc"}}),
            "nrefs:2|case:lc|version:2.6.0");
  EXPECT_EQ(metric_signature({{"a", "b"}, {"c"}}, {}), "nrefs:var|version:2.6.0");
}

TEST(MetricSignature, NamesTheSegmentWithoutReference) {
  try {
    check_segments("bleu", {"a", "b"}, {{"a"}, {}});
    FAIL() << "segment 2 has no reference";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(e.what(), "bleu: segment 2 has no reference");
  }
  EXPECT_THROW(check_segments("bleu", {"a"}, {}), Error);
  EXPECT_THROW(check_segments("bleu", {}, {}), Error);
}

}  // namespace
}  // namespace heed
