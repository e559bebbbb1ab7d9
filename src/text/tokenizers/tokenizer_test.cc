#include "heed/tokenizer.h"

#include <gtest/gtest.h>

#include "heed/error.h"

namespace heed {
namespace {

TEST(LoadTokenizer, NamesAMissingPath) {
  try {
    load_tokenizer("no/such/folder");
    FAIL() << "loaded a tokenizer from nothing";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(e.what()).find("no/such/folder"), std::string::npos);
  }
}

}  // namespace
}  // namespace heed
