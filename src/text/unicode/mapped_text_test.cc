#include "text/unicode/mapped_text.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

using Positions = std::vector<int64_t>;

TEST(MappedText, KeepsValidTextUnchanged) {
  const MappedText mapped = map_repaired("plain é");
  EXPECT_EQ(mapped.text, "plain é");
  EXPECT_TRUE(mapped.source.empty());
  EXPECT_EQ(mapped.source_position(8), 8);
}

TEST(MappedText, MapsRepairedBytes) {
  const MappedText mapped = map_repaired(
      "a\xe1\x80"
      "é\xff");
  EXPECT_EQ(mapped.text, "a\xef\xbf\xbdé\xef\xbf\xbd");
  EXPECT_EQ(mapped.source, (Positions{0, 1, 1, 1, 3, 4, 5, 5, 5, 6}));
}

TEST(MappedText, MapsReplacedBytes) {
  const MappedText same = map_replaced(map_repaired("abc"), "x", "yy");
  EXPECT_EQ(same.text, "abc");
  EXPECT_TRUE(same.source.empty());
  const MappedText mapped = map_replaced(map_repaired("\xff▁b"), "▁", " ", "<>");
  EXPECT_EQ(mapped.text, "<>\xef\xbf\xbd b");
  EXPECT_EQ(mapped.source, (Positions{0, 0, 0, 0, 0, 1, 4, 5}));
}

}  // namespace
}  // namespace heed
