#include "text/json_tokenizer.h"

#include <gtest/gtest.h>

#include "base/file_testing.h"
#include "text/tokenizer_testing.h"

namespace heed {
namespace {

// The reference tokenizers, every line of them.
TEST(GoldenTokenizers, BertUncased) { expect_golden(golden_tokenizer("bert-uncased")); }
TEST(GoldenTokenizers, Gpt2) { expect_golden(golden_tokenizer("gpt2")); }
TEST(GoldenTokenizers, Gpt2FromItsOlderFiles) {
  expect_golden(golden_tokenizer("gpt2"), "merges.txt");
}
TEST(GoldenTokenizers, MiniLm) { expect_golden(golden_tokenizer("minilm")); }
TEST(GoldenTokenizers, Mistral) { expect_golden(golden_tokenizer("mistral")); }
TEST(GoldenTokenizers, T5) { expect_golden(golden_tokenizer("t5")); }

}  // namespace
}  // namespace heed
