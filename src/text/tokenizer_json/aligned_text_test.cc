#include "text/tokenizer_json/aligned_text.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(AlignedText, FollowsEdits) {
  AlignedText text("hello world", 100, true);
  EXPECT_EQ(text.source(1, 3), (TextSpan{101, 103}));
  TextEdit edit(text);
  edit.replace(0, 0, "__");
  edit.keep(0, 5);
  edit.replace(5, 6, "<>");
  edit.replace(6, 11, "");
  edit.replace(11, 11, "!");
  edit.finish(text);
  EXPECT_EQ(text.text, "__hello<>!");
  EXPECT_EQ(text.source(0, 2), (TextSpan{100, 100}));
  EXPECT_EQ(text.source(0, 3), (TextSpan{100, 101}));
  EXPECT_EQ(text.source(7, 9), (TextSpan{105, 106}));
  EXPECT_EQ(text.source(9, 10), (TextSpan{111, 111}));
  EXPECT_EQ(text.source(4, 4), (TextSpan{}));

  // A second edit composes with the first.
  TextEdit again(text);
  again.replace(0, 7, "H");
  again.finish(text);
  EXPECT_EQ(text.source(0, 1), (TextSpan{100, 105}));
}

TEST(AlignedText, NeedsNoSources) {
  AlignedText text("ab", 0, false);
  TextEdit edit(text);
  edit.keep(0, 1);
  edit.replace(1, 2, "xyz");
  edit.finish(text);
  EXPECT_EQ(text.text, "axyz");
  EXPECT_TRUE(text.sources.empty());
}

}  // namespace
}  // namespace heed
