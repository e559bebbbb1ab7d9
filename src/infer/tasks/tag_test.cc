#include <algorithm>

#include "infer/tasks/task_testing.h"

namespace heed {
namespace {

class TagTest : public TaskTest {};

TEST_F(TagTest, GivesEveryWordTheLabelOfItsFirstToken) {
  const Tagger tagger(make(tiny(Head::token_classifier, 3)), {.threads = 1});
  const std::string text = "  the dogs\trun .";  // dogs is dog ##s
  const Tagged tagged = tagger.tag({{.text = text}}, {.logits = true})[0];
  EXPECT_EQ(tagged.tokens, 7);
  EXPECT_FALSE(tagged.truncated);
  ASSERT_EQ(tagged.logits.size(), size_t{7 * 3});
  const std::vector<TextSpan> spans = {{2, 5}, {6, 10}, {11, 14}, {15, 16}};
  const std::vector<size_t> first_tokens = {1, 2, 4, 5};
  ASSERT_EQ(tagged.words.size(), spans.size());
  for (size_t w = 0; w < spans.size(); ++w) {
    EXPECT_EQ(tagged.words[w].span, spans[w]);
    const float* logits = &tagged.logits[first_tokens[w] * 3];
    EXPECT_EQ(tagged.words[w].label, std::max_element(logits, logits + 3) - logits);
    EXPECT_EQ(tagged.words[w].name, "LABEL_" + std::to_string(tagged.words[w].label));
    EXPECT_GE(tagged.words[w].probability, 1.0 / 3);
    EXPECT_LE(tagged.words[w].probability, 1);
  }
}

TEST_F(TagTest, SaysWhichWordsWereNotRead) {
  const Tagger tagger(make(tiny(Head::token_classifier, 3)), {.threads = 1, .max_tokens = 5});
  const Tagged tagged = tagger.tag({{.text = "the cat sat on the mat"}})[0];
  EXPECT_TRUE(tagged.truncated);
  EXPECT_EQ(tagged.tokens, 5);
  std::vector<bool> labelled;
  for (const TaggedWord& word : tagged.words) labelled.push_back(word.label >= 0);
  EXPECT_EQ(labelled, (std::vector<bool>{true, true, true, false, false, false}));
}

TEST_F(TagTest, SpansOfTokensMayEndInsideAWord) {
  const Tagger tagger(make(tiny(Head::token_classifier, 3)), {.threads = 1});
  const std::vector<TaskInput> inputs = many_texts(40);
  const auto by_word = tagger.tag(inputs);
  const auto by_token = tagger.tag(inputs, {.aggregation = Aggregation::simple});
  bool differ = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    differ = differ || by_word[i].spans.size() != by_token[i].spans.size();
    for (const TaggedSpan& span : by_word[i].spans) {
      const bool at_word = std::ranges::any_of(
          by_word[i].words, [&](const TaggedWord& word) { return word.span.end == span.span.end; });
      EXPECT_TRUE(at_word);
    }
  }
  EXPECT_TRUE(differ);
}

TEST_F(TagTest, AnswersAnEmptyTextWithNoWords) {
  const Tagger tagger(make(tiny(Head::token_classifier, 3)), {.threads = 1});
  const Tagged tagged = tagger.tag({{.text = ""}})[0];
  EXPECT_EQ(tagged.tokens, 2);
  EXPECT_TRUE(tagged.words.empty());
  EXPECT_TRUE(tagged.spans.empty());
}

TEST_F(TagTest, RefusesOtherModels) {
  const Model model = make(tiny(Head::classifier, 3));
  expect_error(ErrorCode::unsupported, "token_classifier", [&] { Tagger tagger(model); });
}

}  // namespace
}  // namespace heed
