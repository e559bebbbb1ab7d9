#include "cli/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace heed::cli {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoSpacesAtTheEnd) {
  Table table({{"name"}, {"ms", Align::right}, {"limit"}});
  table.add_row({"gelu", "0.5", "memory"});
  table.add_row({"layer_norm", "12.25", "l2"});
  EXPECT_EQ(table.text(),
            "name           ms  limit\n"
            "gelu          0.5  memory\n"
            "layer_norm  12.25  l2\n");
}

TEST(Table, HasTitlesWithoutRows) { EXPECT_EQ(Table({{"a"}, {"b"}}).text(), "a  b\n"); }

TEST(Table, RefusesARowOfAnotherWidth) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), std::logic_error);
}

TEST(Sizes, SayWhatSmallModelsHave) {
  EXPECT_EQ(bytes_text(22'624), "22.6 kB");
  EXPECT_EQ(bytes_text(4'512'000), "4.5 MB");
  EXPECT_EQ(count_text(63'082'496), "63.1 M");
}

}  // namespace
}  // namespace heed::cli
