#include "cli/line_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "heed/error.h"

namespace heed::cli {
namespace {

using testing::ElementsAre;

class LineFeedTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::string path =
        (std::filesystem::path(testing::TempDir()) / ("line_feed_" + name)).string();
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(LineFeedTest, GivesTheLinesOfAllFilesInPortions) {
  LineFeed feed({file("a", "1\n2\n3\n"), file("empty", ""), file("b", "4\n\n5")});
  std::vector<std::string> lines;
  ASSERT_TRUE(feed.next(2, lines));
  EXPECT_THAT(lines, ElementsAre("1", "2"));
  ASSERT_TRUE(feed.next(2, lines));
  EXPECT_THAT(lines, ElementsAre("3"));
  ASSERT_TRUE(feed.next(9, lines));
  EXPECT_THAT(lines, ElementsAre("4", "", "5"));
  EXPECT_FALSE(feed.next(9, lines));
}

TEST_F(LineFeedTest, AFileThatIsNotThereIsAnError) {
  LineFeed feed({"no/such/file"});
  std::vector<std::string> lines;
  EXPECT_THROW(feed.next(1, lines), Error);
}

}  // namespace
}  // namespace heed::cli
