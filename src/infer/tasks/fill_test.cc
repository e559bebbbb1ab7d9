#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

class FillTest : public TaskTest {};

TEST_F(FillTest, GivesTheLikeliestPiecesOfEachMask) {
  const Filler filler(make(tiny(Head::masked_lm)), {.threads = 1});
  const Filled filled = filler.fill({{.text = "the [MASK] sat on <mask> ."}}, {.top = 40})[0];
  EXPECT_EQ(filled.source, "the [MASK] sat on [MASK] .");
  ASSERT_EQ(filled.masks.size(), size_t{2});
  EXPECT_EQ(filled.masks[0].span, (TextSpan{4, 10}));
  EXPECT_EQ(filled.masks[1].span, (TextSpan{18, 24}));
  EXPECT_EQ(filled.masks[0].token, 2);
  for (const FilledMask& mask : filled.masks) {
    ASSERT_EQ(mask.candidates.size(), size_t{40});
    double sum = 0;
    for (size_t c = 0; c < mask.candidates.size(); ++c) {
      sum += mask.candidates[c].probability;
      if (c > 0) {
        EXPECT_LE(mask.candidates[c].probability, mask.candidates[c - 1].probability);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  EXPECT_EQ(filled.text, "the " + filled.masks[0].candidates[0].text + " sat on " +
                             filled.masks[1].candidates[0].text + " .");
}

TEST_F(FillTest, IsTheSameAloneAndAmongOthers) {
  const Model model = make(tiny(Head::masked_lm));
  const std::vector<TaskInput> inputs = many_texts(40, "[MASK] ");
  const auto together = Filler(model, {.threads = 2, .batch_tokens = 64}).fill(inputs);
  const Filler alone(model, {.threads = 1});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Filled one = alone.fill({inputs[i]})[0];
    ASSERT_EQ(together[i].masks.size(), size_t{1});
    for (size_t c = 0; c < 5; ++c) {
      EXPECT_EQ(together[i].masks[0].candidates[c].id, one.masks[0].candidates[c].id) << i;
      EXPECT_EQ(together[i].masks[0].candidates[c].probability,
                one.masks[0].candidates[c].probability)
          << i;
    }
  }
}

TEST_F(FillTest, SaysWhatIsWrongWithAText) {
  const Filler filler(make(tiny(Head::masked_lm)), {.threads = 1, .max_tokens = 6});
  expect_error(ErrorCode::invalid_argument, "input 18: there is no mask", [&] {
    filler.fill({{.text = "a [MASK]"}, {.text = "the cat"}}, {.first_number = 17});
  });
  expect_error(ErrorCode::invalid_argument, "no mask among the first 6 tokens",
               [&] { filler.fill({{.text = "the cat sat on the [MASK]"}}); });
  expect_error(ErrorCode::invalid_argument, "found a pair",
               [&] { filler.fill({{.text = "a [MASK]", .second = "the [MASK]"}}); });
  const Filled nothing = filler.fill({{.text = "  "}})[0];
  EXPECT_TRUE(nothing.masks.empty());
  EXPECT_EQ(nothing.text, "  ");
}

TEST_F(FillTest, RefusesOtherModels) {
  const Model model = make(tiny(Head::none));
  expect_error(ErrorCode::unsupported, "masked_lm", [&] { Filler filler(model); });
}

}  // namespace
}  // namespace heed
