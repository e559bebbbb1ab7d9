// Shared by tests of tokenizers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// A folder of reference tokenizers: in the repository or, for large ones, in ../shared.
inline std::string golden_tokenizer(const std::string& name) {
  const std::string own = std::string(HEED_TEST_DATA) + "/golden/tokenizers/" + name;
  return std::filesystem::exists(own) ? own
                                      : std::string(HEED_SHARED) + "/golden/tokenizers/" + name;
}

// Every line of FOLDER/expected.jsonl: {"text", "ids", "ids_without_special", "decoded"}.
inline void expect_golden(const Tokenizer& tokenizer, const std::string& folder) {
  std::ifstream lines(folder + "/expected.jsonl");
  if (!lines) GTEST_SKIP() << folder << " is not there";
  int cases = 0, faults = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json expected = nlohmann::json::parse(line);
    const std::string text = expected.at("text");
    const std::vector<int32_t> ids = expected.at("ids");
    const std::vector<int32_t> plain = expected.at("ids_without_special");
    const std::string decoded = expected.at("decoded");
    const EncodeOptions no_special = {.special_tokens = false};
    EXPECT_EQ(tokenizer.encode(text).ids, ids) << text;
    EXPECT_EQ(tokenizer.encode_ids(text), ids) << text;
    EXPECT_EQ(tokenizer.encode_ids(text, no_special), plain) << text;
    EXPECT_EQ(tokenizer.decode(ids), decoded) << text;
    ++cases;
    if (testing::Test::HasFailure() && ++faults == 5) return;  // enough to diagnose
  }
  EXPECT_GT(cases, 0);
}

// Loads first: GTEST_SKIP where the folder is not there.
inline void expect_golden(const std::string& folder, const std::string& file = "") {
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  expect_golden(*load_tokenizer(file.empty() ? folder : folder + "/" + file), folder);
}

// One span per id, in order, inside the text.
inline void expect_good_offsets(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding e = tokenizer.encode(text);
  ASSERT_EQ(e.offsets.size(), e.ids.size());
  ASSERT_EQ(e.types.size(), e.ids.size());
  ASSERT_EQ(e.is_special.size(), e.ids.size());
  int64_t before = 0;
  for (const TextSpan& span : e.offsets) {
    EXPECT_GE(span.begin, before) << text;
    EXPECT_GE(span.end, span.begin) << text;
    EXPECT_LE(span.end, static_cast<int64_t>(text.size())) << text;
    before = span.begin;
  }
}

}  // namespace heed
