#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/engine.h"
#include "heed/error.h"
#include "heed/translate.h"
#include "infer/engine/engine_testing.h"

namespace heed {
namespace {

TranslateOptions short_options(int nbest = 1) {
  SearchOptions search;
  search.max_new_tokens = 6, search.beam = nbest, search.nbest = nbest;
  return {.search = search};
}

class TranslatorTest : public testing::Test {
 protected:
  const Model model_ = tiny_model(Family::encoder_decoder);
  Translator translator_{model_, {.threads = 1, .kv_memory_bytes = 4 << 20}};

  std::string translate(const std::string& text) {
    return translator_.translate(text, short_options()).text;
  }
};

TEST_F(TranslatorTest, SentencesOneByOneWithTheSpaceBetweenThem) {
  const std::string one = translate("It rains."), two = translate("Does it?");
  const Translation both = translator_.translate("  It rains. \n\n Does it?\t", short_options());
  EXPECT_EQ(both.text, "  " + one + " \n\n " + two + "\t");
  EXPECT_EQ(both.sentences, 2);
  EXPECT_FALSE(both.truncated);
}

TEST_F(TranslatorTest, NothingButSpaceStaysAsItIs) {
  EXPECT_EQ(translate(""), "");
  EXPECT_EQ(translate(" \t "), " \t ");
}

TEST_F(TranslatorTest, ManyComeInOrder) {
  const std::vector<std::string> texts{"", "A b. C d.", "  ", "E", "", "F g h. I."};
  std::vector<std::string> results;
  translator_.translate(texts, short_options(), [&](size_t i, Translation&& t) {
    EXPECT_EQ(i, results.size());
    results.push_back(t.text);
  });
  ASSERT_EQ(results.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(results[i], translate(texts[i])) << i;
}

TEST_F(TranslatorTest, WhatIsTooLongIsTranslatedInPieces) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "word ";
  const Translation t = translator_.translate(text, short_options());
  EXPECT_GE(t.sentences, 6);  // 500 bytes, of which the model reads 96 at once
  EXPECT_FALSE(t.truncated);
}

// A long "word" is no word: it is copied, and costs nothing. Before, each of its tokens cost up to
// three decoded ones.
TEST_F(TranslatorTest, LongWordsAreCopied) {
  const std::string word(10'000, 'a');
  const int64_t before = translator_.engine().statistics().rows;
  EXPECT_EQ(translate(word), word);
  EXPECT_EQ(translator_.engine().statistics().rows, before);
  // Between other words it stays where it is.
  const std::string one = translate("It rains:"), two = translate("today.");
  const Translation both =
      translator_.translate("It rains: " + word + "\ttoday.", short_options(2));
  EXPECT_TRUE(both.text.ends_with(" " + word + "\t" + two)) << both.text;
  for (const std::string& text : both.alternatives) EXPECT_NE(text.find(word), text.npos);
  EXPECT_EQ(both.sentences, 2);
}

// The cost is linear in the tokens of the source.
TEST_F(TranslatorTest, LongTextsCostNoMoreThanTheirTokens) {
  const auto rows_of = [&](int words) {
    std::string text;
    for (int i = 0; i < words; ++i) text += "word ";
    const int64_t before = translator_.engine().statistics().rows;
    translator_.translate(text, short_options());
    return translator_.engine().statistics().rows - before;
  };
  const int64_t few = rows_of(200);
  EXPECT_LE(rows_of(1600), 9 * few);
}

TEST_F(TranslatorTest, WithoutSplittingWhatWasCutIsSaid) {
  TranslateOptions options = short_options();
  options.split_sentences = false;
  const Translation t = translator_.translate(std::string(1000, 'x'), options);
  EXPECT_TRUE(t.truncated);
  EXPECT_EQ(t.sentences, 1);
}

// Each rank has a line, also of what has nothing to translate.
TEST_F(TranslatorTest, AnEmptyTextHasAsManyAlternatives) {
  const Translation t = translator_.translate("", short_options(3));
  EXPECT_EQ(t.alternatives, (std::vector<std::string>{"", "", ""}));
  EXPECT_EQ(t.scores.size(), 3u);
}

// A required phrase is of the text, not of every sentence.
TEST_F(TranslatorTest, RequiredPhrasesOccurOnce) {
  TranslateOptions options = short_options(2);
  options.search->max_new_tokens = 20;
  options.search->required = {"qx"};
  const Translation t = translator_.translate("One two. Three four. Five.", options);
  const size_t first = t.text.find("qx");
  ASSERT_NE(first, t.text.npos) << t.text;
  EXPECT_EQ(t.text.find("qx", first + 1), t.text.npos) << t.text;
  EXPECT_EQ(t.sentences, 3);
  EXPECT_NE(translator_.translate("One.", options).text.find("qx"), std::string::npos);
}

TEST_F(TranslatorTest, ASampledTranslationNamesItsSeed) {
  TranslateOptions options = short_options();
  options.search->sample = true, options.search->seed = 7;
  EXPECT_EQ(translator_.translate("One.", options).seed, 7u);
  EXPECT_EQ(translator_.translate("One.", short_options()).seed, 0u);
}

TEST_F(TranslatorTest, AlternativesAreBestFirst) {
  const Translation t = translator_.translate("One. Two.", short_options(3));
  ASSERT_EQ(t.alternatives.size(), 3u);
  EXPECT_EQ(t.alternatives[0], t.text);
  EXPECT_GE(t.scores[0], t.scores[1]);
  EXPECT_GE(t.scores[1], t.scores[2]);
}

TEST_F(TranslatorTest, AlignmentsAreOfTheWholeTexts) {
  TranslateOptions options = short_options();
  options.search->alignments = true;
  options.source_prefix = "do: ";
  const std::string text = "One two. Three four.";
  const Translation t = translator_.translate(text, options);
  int64_t last = 0;
  for (const Alignment& a : t.alignments) {
    EXPECT_GE(a.source.begin, 0);
    EXPECT_LE(a.source.end, static_cast<int64_t>(text.size()));
    EXPECT_LE(a.target.end, static_cast<int64_t>(t.text.size()));
    EXPECT_GE(a.target.begin, last);
    last = a.target.begin;
  }
}

TEST_F(TranslatorTest, TermsAreUsedWhereTheyOccur) {
  TranslateOptions options = short_options();
  options.terms = {{.source = "rains", .target = "qx"}, {.source = "snows", .target = "zw"}};
  const Translation t = translator_.translate("It Rains. Does it?", options);
  EXPECT_NE(t.text.find("qx"), std::string::npos) << t.text;
  ASSERT_EQ(t.terms.size(), 1u);
  EXPECT_EQ(t.terms[0].term, 0u);
  EXPECT_TRUE(t.terms[0].used);
  // Sentences without terms are as they were.
  EXPECT_TRUE(t.text.ends_with(" " + translate("Does it?"))) << t.text;
}

TEST_F(TranslatorTest, ATermThatDoesNotFitIsToldToBeUnused) {
  TranslateOptions options = short_options();
  options.terms = {{.source = "rains", .target = "a phrase of many more letters than may come"}};
  const Translation t = translator_.translate("It rains.", options);
  ASSERT_EQ(t.terms.size(), 1u);
  EXPECT_FALSE(t.terms[0].used);
}

TEST_F(TranslatorTest, UnknownLanguage) {
  TranslateOptions options = short_options();
  options.target_language = "klingon";
  EXPECT_THROW(translator_.translate("One.", options), Error);
}

TEST(Translator, OnlyTokensForLanguagesAreLanguages) {
  ModelConfig config = tiny_config(Family::encoder_decoder);
  config.vocabulary = 400;
  const TokenizerPtr tokenizer = train_tokenizer(
      {.type = "byte", .special_tokens = {">>de<<", "__fr__", "fra_Latn", "it", "<2es>"}});
  Translator translator(Model(std::make_shared<const Network>(config, 1), tokenizer),
                        {.threads = 1, .kv_memory_bytes = 4 << 20});
  TranslateOptions options = short_options();
  for (const char* language : {"de", ">>de<<", "fr", "__fr__", "fra_Latn", "it", "es"}) {
    options.target_language = language;
    EXPECT_NO_THROW(translator.translate("One.", options)) << language;
  }
  ASSERT_TRUE(tokenizer->find("d"));  // a piece like any other
  for (const bool of_source : {false, true}) {
    options.target_language = of_source ? "" : "d";
    options.source_language = of_source ? "d" : "";
    EXPECT_THROW(translator.translate("One.", options), Error);
  }
}

TEST(Translator, OfADecoderOnlyModelIsRefused) {
  EXPECT_THROW(Translator(tiny_model(Family::decoder_only)), Error);
}

TEST(Generator, GoesOnFromThePrompt) {
  Generator generator(tiny_model(Family::decoder_only), {.threads = 1, .kv_memory_bytes = 4 << 20});
  SearchOptions search;
  search.max_new_tokens = 5;
  const Answer answer = generator.generate("abc", search);
  EXPECT_EQ(answer.new_tokens, 5);
  EXPECT_EQ(answer.ids.size(), 8u);
}

}  // namespace
}  // namespace heed
