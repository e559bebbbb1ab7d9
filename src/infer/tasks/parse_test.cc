#include "heed/tasks.h"

#include "infer/tasks/task_testing.h"
#include "text/trees/tree.h"

namespace heed {
namespace {

class ParseTest : public TaskTest {};

// Random weights write no sense; what comes back must still be a tree over the words.
TEST_F(ParseTest, MakesATreeOfWhateverTheModelWrites) {
  ModelConfig config = tiny(Head::language_model);
  config.family = Family::encoder_decoder;
  config.token_types = 0, config.embedding_norm = false, config.decoder_layers = 2;
  config.decoder_start_id = 0, config.eos_id = 3;
  Parser parser(make(config), {.threads = 1});
  SearchOptions search;
  search.max_new_tokens = 8, search.end_ids = {3};
  const std::vector<std::string> sentences = {"the cat  sat", "", "a dog", "\tnew york ."};
  const std::vector<Parsed> results = parser.parse(sentences, search);
  ASSERT_EQ(results.size(), sentences.size());
  EXPECT_EQ(results[1].tree, "");
  EXPECT_EQ(words_of(parse_tree(results[0].tree)), (std::vector<std::string>{"the", "cat", "sat"}));
  EXPECT_EQ(words_of(parse_tree(results[2].tree)), (std::vector<std::string>{"a", "dog"}));
  EXPECT_EQ(words_of(parse_tree(results[3].tree)), (std::vector<std::string>{"new", "york", "."}));
  // One by one they are the same.
  for (size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_EQ(parser.parse({sentences[i]}, search)[0].linear, results[i].linear);
  }
}

TEST_F(ParseTest, RefusesOtherModels) {
  const Model model = make(tiny(Head::classifier, 2));
  expect_error(ErrorCode::unsupported, "encoder-decoder", [&] { Parser parser(model); });
}

}  // namespace
}  // namespace heed
