#include "text/training/tokenizer_training.h"

#include "base/files/file_testing.h"
#include "text/tokenizers/tokenizer_testing.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;

class TrainTokenizer : public FolderTest {
 protected:
  // A short English text with repeated words.
  std::string text(const std::string& name = "text") {
    const std::vector<std::string> people = {"the king", "The queen", "a fool", "old Hamlet"};
    const std::vector<std::string> deeds = {"walked to", "was seen in", "will never leave"};
    const std::vector<std::string> places = {"the castle.", "a garden,", "Élsinore!", "the sea"};
    std::string all;
    for (const auto& person : people) {
      for (const auto& deed : deeds) {
        for (const auto& place : places) all += person + " " + deed + " " + place + "\n";
      }
    }
    return write(name, all);
  }

  TokenizerTraining training(const std::string& type, int64_t vocabulary) {
    TokenizerTraining result;
    result.type = type;
    result.vocabulary = vocabulary;
    result.files = {text()};
    return result;
  }

  void expect_saved(const Tokenizer& trained) {
    trained.save(path("saved"));
    const TokenizerPtr loaded = load_tokenizer(path("saved"));
    EXPECT_EQ(loaded->vocabulary_size(), trained.vocabulary_size());
    for (const std::string line : {"the king walked to Élsinore!", "", "unknown ☃ <sep> words"}) {
      EXPECT_EQ(loaded->encode_ids(line), trained.encode_ids(line)) << line;
      EXPECT_EQ(loaded->decode(loaded->encode_ids(line)), trained.decode(trained.encode_ids(line)));
    }
  }
};

TEST_F(TrainTokenizer, SentencePieceKeepsRareCharacters) {
  // Ten letters in many words, and one line of other characters: 0.02 % of the text.
  std::string lines = "Ärzte: 4 (of 789), 56 %\n";
  for (int i = 0; i < 20'000; ++i) {
    for (int n = i; n > 0; n /= 10) lines += static_cast<char>('a' + n % 10);
    lines += '\n';
  }
  TokenizerTraining settings = training("bpe", 300);
  settings.files = {write("rare", lines)};
  const std::string text = "Ärzte: 4 (of 789), 56 %";
  TokenizerPtr trained = train_tokenizer(settings);
  EXPECT_EQ(trained->decode(trained->encode_ids(text)), text);

  // They would take more than an eighth of this vocabulary, and are excluded.
  settings.vocabulary = 100;
  trained = train_tokenizer(settings);
  EXPECT_THAT(trained->encode_ids("789"), testing::Contains(trained->special_ids().unknown));
  EXPECT_EQ(trained->decode(trained->encode_ids("abcdefg")), "abcdefg");
}

TEST_F(TrainTokenizer, SentencePieceModels) {
  for (const std::string type : {"bpe", "unigram"}) {
    const int64_t vocabulary = type == "bpe" ? 70 : 42;
    TokenizerTraining settings = training(type, vocabulary);
    settings.special_tokens = {"<sep>", "<a,\"b>"};
    TokenizerTrainingReport report;
    const TokenizerPtr trained = train_tokenizer(settings, &report);
    EXPECT_EQ(report.lines, 48) << type;
    EXPECT_EQ(trained->vocabulary_size(), vocabulary) << type;
    EXPECT_EQ(trained->special_ids().pad, 0);
    EXPECT_EQ(trained->special_ids().end, 1);
    EXPECT_EQ(trained->special_ids().unknown, 2);
    EXPECT_EQ(trained->find("<sep>"), 3);
    EXPECT_EQ(trained->find("<a,\"b>"), 4);
    EXPECT_EQ(trained->encode_ids("<sep>"), (Ids{3, 1}));
    const std::string line = "the king walked to Élsinore!";
    EXPECT_EQ(trained->decode(trained->encode_ids(line)), line);
    EXPECT_LT(trained->encode_ids(line).size(), line.size());
    expect_saved(*trained);
    EXPECT_EQ(train_tokenizer(settings)->encode_ids(line), trained->encode_ids(line));
  }
}

TEST_F(TrainTokenizer, SentencePieceSymbolsBytesAndDigits) {
  for (const std::string type : {"bpe", "unigram"}) {
    TokenizerTraining settings = training(type, 340);
    if (type == "unigram") settings.vocabulary = 298;
    settings.user_symbols = {"<ph0>"};
    settings.byte_fallback = true;
    settings.split_digits = true;
    const TokenizerPtr trained = train_tokenizer(settings);
    // A user symbol is one piece, and stays in the decoded text.
    const std::string line = "the king <ph0> walked";
    EXPECT_THAT(trained->encode_ids(line), testing::Contains(*trained->find("<ph0>"))) << type;
    EXPECT_EQ(trained->decode(trained->encode_ids(line)), line) << type;
    // A character that the text does not have is its bytes, so nothing is lost.
    const std::string snow = "the king ☃ was";
    EXPECT_THAT(trained->encode_ids(snow),
                testing::Not(testing::Contains(trained->special_ids().unknown)));
    EXPECT_TRUE(trained->find("<0xE2>").has_value());
    EXPECT_EQ(trained->decode(trained->encode_ids(snow)), snow) << type;
    expect_saved(*trained);
  }
  TokenizerTraining bytes = training("byte-bpe", 300);
  bytes.byte_fallback = true;
  expect_error(ErrorCode::invalid_argument, "byte_fallback needs a tokenizer of type bpe",
               [&] { train_tokenizer(bytes); });
}

TEST_F(TrainTokenizer, ByteLevelBpe) {
  TokenizerTraining settings = training("byte-bpe", 300);
  settings.special_tokens = {"<sep>"};
  const TokenizerPtr trained = train_tokenizer(settings);
  EXPECT_EQ(trained->vocabulary_size(), 300);
  EXPECT_EQ(trained->find("<|endoftext|>"), 0);
  EXPECT_EQ(trained->find("<sep>"), 1);
  EXPECT_EQ(trained->find("!"), 2);  // the first of the alphabet
  EXPECT_TRUE(trained->find("Ġwas").has_value());
  EXPECT_EQ(trained->encode_ids("<sep>"), Ids{1});
  for (const std::string line : {"the king walked to Élsinore!", "\xff\xfe \x80", "☃ \n\n x", ""}) {
    EXPECT_EQ(trained->decode(trained->encode_ids(line)), line);
  }
  expect_saved(*trained);
  // vocab.json and merges.txt are equivalent to tokenizer.json.
  std::filesystem::remove(path("saved/tokenizer.json"));
  EXPECT_EQ(load_tokenizer(path("saved"))->encode_ids("the king was"),
            trained->encode_ids("the king was"));
}

TEST_F(TrainTokenizer, Roberta) {
  const TokenizerPtr trained = train_tokenizer(training("roberta", 300));
  EXPECT_EQ(trained->vocabulary_size(), 300);
  EXPECT_EQ(trained->special_ids().begin, 0);
  EXPECT_EQ(trained->special_ids().pad, 1);
  EXPECT_EQ(trained->special_ids().end, 2);
  EXPECT_EQ(trained->special_ids().unknown, 3);
  EXPECT_EQ(trained->special_ids().mask, 4);
  EXPECT_EQ(trained->encode_ids("<mask>"), (Ids{0, 4, 2}));
  const Ids king = trained->encode_ids("the king", {.special_tokens = false});
  Ids pair{0};  // <s> A </s></s> B </s>, all of one type
  pair.insert(pair.end(), king.begin(), king.end());
  pair.insert(pair.end(), {2, 2});
  pair.insert(pair.end(), king.begin(), king.end());
  pair.push_back(2);
  EXPECT_EQ(trained->encode_pair("the king", "the king").ids, pair);
  EXPECT_EQ(trained->decode(trained->encode_ids("the king was")), "the king was");
  expect_saved(*trained);
  std::filesystem::remove(path("saved/tokenizer.json"));
  EXPECT_EQ(load_tokenizer(path("saved"))->encode_ids("the king was"),
            trained->encode_ids("the king was"));
}

TEST_F(TrainTokenizer, WordPiece) {
  TokenizerTraining settings = training("wordpiece", 80);
  settings.lowercase = true;
  const TokenizerPtr trained = train_tokenizer(settings);
  EXPECT_EQ(trained->vocabulary_size(), 80);
  EXPECT_EQ(trained->piece(0), "[PAD]");
  EXPECT_EQ(trained->special_ids().classify, 2);
  EXPECT_EQ(trained->special_ids().mask, 4);
  const std::string line = "the king walked to elsinore!";
  EXPECT_EQ(trained->decode(trained->encode_ids("The King walked to Élsinore!")), line);
  EXPECT_EQ(trained->encode_pair("the", "the").types, (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(trained->encode_ids("☃", {.special_tokens = false}), Ids{1});
  expect_saved(*trained);
  std::filesystem::remove(path("saved/tokenizer.json"));
  EXPECT_EQ(load_tokenizer(path("saved"))->encode_ids(line), trained->encode_ids(line));
}

TEST_F(TrainTokenizer, IsIndependentOfTheNumberOfThreads) {
  for (const std::string type : {"byte-bpe", "wordpiece"}) {
    TokenizerTraining settings = training(type, type == "wordpiece" ? 90 : 320);
    settings.threads = 1;
    train_tokenizer(settings)->save(path("one"));
    settings.threads = 3;
    train_tokenizer(settings)->save(path("three"));
    EXPECT_EQ(read_text(path("one/tokenizer.json")), read_text(path("three/tokenizer.json")));
  }
}

TEST_F(TrainTokenizer, LowercasesText) {
  for (const std::string type : {"unigram", "char", "byte-bpe"}) {
    TokenizerTraining settings = training(type, type == "byte-bpe" ? 280 : 38);
    settings.lowercase = true;
    const TokenizerPtr trained = train_tokenizer(settings);
    EXPECT_EQ(trained->encode_ids("The QUEEN"), trained->encode_ids("the queen")) << type;
    EXPECT_EQ(trained->decode(trained->encode_ids("The QUEEN")), "the queen") << type;
  }
}

TEST_F(TrainTokenizer, Characters) {
  TokenizerTraining settings = training("char", 1000);
  settings.files = {write("x",
                          "bab\xff\n\nc\xc3\xa9"
                          "b\n")};
  settings.special_tokens = {"<sep>"};
  TokenizerTrainingReport report;
  const TokenizerPtr trained = train_tokenizer(settings, &report);
  EXPECT_EQ(report.invalid_lines, 1);
  EXPECT_EQ(report.empty_lines, 1);
  EXPECT_EQ(trained->encode_ids("\nabcé<sep>z"), (Ids{4, 5, 6, 7, 8, 3, 2, 1}));
  expect_saved(*trained);
  settings.vocabulary = 6;  // room for two: b, three times, and the newline, twice
  const TokenizerPtr small = train_tokenizer(settings);
  EXPECT_EQ(small->vocabulary_size(), 6);
  EXPECT_EQ(small->encode_ids("\nab"), (Ids{4, 2, 5, 1}));
}

TEST_F(TrainTokenizer, BytesNeedNoText) {
  TokenizerTraining settings;
  settings.type = "byte";
  settings.special_tokens = {"<sep>"};
  const TokenizerPtr trained = train_tokenizer(settings);
  EXPECT_EQ(trained->encode_ids("a<sep>"), (Ids{100, 384, 1}));
  expect_saved(*trained);
}

TEST_F(TrainTokenizer, RejectsInvalidSettings) {
  const auto expect_rejected = [](const TokenizerTraining& settings, const std::string& message) {
    expect_error(ErrorCode::invalid_argument, message, [&] { train_tokenizer(settings); });
  };
  expect_rejected(training("pbe", 8000), "unknown tokenizer type 'pbe'");
  expect_rejected(training("bpe", 0), "the vocabulary must be from 1 to");
  for (const std::string type : {"bpe", "unigram", "byte-bpe", "wordpiece"}) {
    expect_rejected(training(type, 8000), "a vocabulary of 8000 is too large for this text");
    expect_rejected(training(type, 10), "a vocabulary of 10 is too small for the characters");
    TokenizerTraining empty = training(type, 300);
    empty.files = {write("empty", "\n\n")};
    expect_rejected(empty, "empty is empty");
    empty.files = {path("nothing")};
    expect_error(ErrorCode::not_found, "nothing", [&] { train_tokenizer(empty); });
  }
  TokenizerTraining twice = training("bpe", 100);
  twice.special_tokens = {"<a>", "<a>"};
  expect_rejected(twice, "got <a> twice");
  twice.special_tokens = {""};
  expect_rejected(twice, "empty");
}

}  // namespace
}  // namespace heed
