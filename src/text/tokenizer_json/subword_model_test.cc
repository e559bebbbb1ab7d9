#include "text/tokenizer_json/subword_model.h"

#include <random>
#include <string>

#include "base/files/file_testing.h"
#include "text/tokenizer_json/merge_table.h"

namespace heed {
namespace {

std::unique_ptr<SubwordModel> make(const std::string& json) {
  const auto document = nlohmann::json::parse(json);
  return read_subword_model(JsonNode(document, "model"));
}

// The tokens joined by |; their spans must cover the word.
std::string pieces(const SubwordModel& model, std::string_view word) {
  IdSink out;
  out.wants_spans = true;
  const std::string text = std::string("(").append(word).append(")");
  model.encode(text, 1, 1 + word.size(), out);
  EXPECT_EQ(out.spans.size(), out.ids.size());
  std::string joined;
  for (size_t i = 0; i < out.ids.size(); ++i) {
    EXPECT_LE(out.spans[i].end, 1 + word.size());
    if (i > 0) joined += "|";
    joined += model.vocabulary().piece(out.ids[i]);
  }
  return joined;
}

using Ids = std::vector<int32_t>;

TEST(Bpe, MergesTheEarliestFirst) {
  const auto model =
      make(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5},
                              "merges": ["b c", "a b", ["a", "bc"]]})");
  EXPECT_EQ(pieces(*model, "abc"), "abc");
  EXPECT_EQ(pieces(*model, "abab"), "ab|ab");
  EXPECT_EQ(pieces(*model, "axb"), "ab");  // without an unknown token, x is dropped
  EXPECT_EQ(pieces(*model, ""), "");
}

TEST(Bpe, UnknownCharacters) {
  const std::string vocab = R"("vocab": {"<unk>": 0, "a": 1}, "merges": [])";
  const auto apart = make(R"({"type": "BPE", "unk_token": "<unk>", )" + vocab + "}");
  EXPECT_EQ(pieces(*apart, "xéa"), "<unk>|<unk>|a");
  const auto fused =
      make(R"({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, )" + vocab + "}");
  EXPECT_EQ(pieces(*fused, "xéax"), "<unk>|a|<unk>");
}

TEST(Bpe, FallsBackToBytes) {
  const auto model =
      make(R"({"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "merges": [],
                              "vocab": {"<unk>": 0, "a": 1, "<0xC3>": 2, "<0xA9>": 3}})");
  EXPECT_EQ(pieces(*model, "aé"), "a|<0xC3>|<0xA9>");
  EXPECT_EQ(pieces(*model, "è"), "<unk>");
}

TEST(Bpe, IgnoresMergesForWholeWords) {
  const std::string body = R"("vocab": {"a": 0, "b": 1, "ab": 2, "aba": 3}, "merges": ["a b"]})";
  EXPECT_EQ(pieces(*make(R"({"type": "BPE", )" + body), "aba"), "ab|a");
  EXPECT_EQ(pieces(*make(R"({"type": "BPE", "ignore_merges": true, )" + body), "aba"), "aba");
}

TEST(Bpe, PrefixAndSuffix) {
  const auto suffix = make(R"({"type": "BPE", "end_of_word_suffix": "</w>", "merges": ["a b</w>"],
                               "vocab": {"a": 0, "b": 1, "b</w>": 2, "ab</w>": 3, "ab": 4}})");
  EXPECT_EQ(pieces(*suffix, "ab"), "ab</w>");
  EXPECT_EQ(pieces(*suffix, "bab"), "b|ab</w>");
  const auto prefix =
      make(R"({"type": "BPE", "continuing_subword_prefix": "##", "merges": ["a ##b"],
                               "vocab": {"a": 0, "##b": 1, "ab": 2}})");
  EXPECT_EQ(pieces(*prefix, "abb"), "ab|##b");
}

TEST(Bpe, EncodesRawBytes) {
  const auto model =
      make(R"({"type": "BPE", "vocab": {"Ġ": 0, "a": 1, "Ġa": 2, "Ã": 3, "©": 4, "Ã©": 5},
                              "merges": ["Ġ a", "Ã ©"]})");
  EXPECT_EQ(pieces(*model, "ĠaÃ©"), "Ġa|Ã©");
  EXPECT_TRUE(model->takes_byte_alphabet());
  model->take_bytes();
  EXPECT_EQ(pieces(*model, " aé"), "Ġa|Ã©");
  EXPECT_EQ(pieces(*model, "é"), "Ã©");
}

// Long words use a heap; both paths must equal the definition.
TEST(Bpe, ShortAndLongWordsEqualTheDefinition) {
  nlohmann::json vocab = {{"a", 0}, {"b", 1}, {"c", 2}}, merges = nlohmann::json::array();
  MergeTable table(40);
  std::vector<std::string> names = {"a", "b", "c"};
  std::mt19937 random(1);
  while (merges.size() < 40) {
    const size_t left = random() % names.size(), right = random() % names.size();
    const std::string joined = names[left] + names[right];
    if (vocab.contains(joined)) continue;
    vocab[joined] = names.size();
    table.insert(int32_t(left), int32_t(right), {uint32_t(merges.size()), int32_t(names.size())});
    merges.push_back(names[left] + " " + names[right]);
    names.push_back(joined);
  }
  const auto model =
      make(nlohmann::json{{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}.dump());
  for (int round = 0; round < 400; ++round) {
    std::string word;
    const size_t length = 1 + random() % 120;
    for (size_t i = 0; i < length; ++i) word += "abc"[random() % 3];
    Ids expected;
    for (const char c : word) expected.push_back(c - 'a');
    while (true) {
      size_t best = 0;
      Merge first;
      for (size_t i = 0; i + 1 < expected.size(); ++i) {
        const Merge merge = table.find(expected[i], expected[i + 1]);
        if (merge.rank < first.rank) {
          first = merge;
          best = i;
        }
      }
      if (first.rank == Merge::kNone) break;
      expected[best] = first.id;
      expected.erase(expected.begin() + ptrdiff_t(best) + 1);
    }
    IdSink out;
    model->encode(word, 0, word.size(), out);
    ASSERT_EQ(out.ids, expected) << word << " in round " << round << " of seed 1";
  }
}

// No merge crosses ▁, so long texts are split there: the ids must be those of the whole text.
TEST(Bpe, CutsAtWordMarksOnlyIfNoMergeCrosses) {
  const std::string within =
      R"("vocab": {"▁": 0, "a": 1, "▁a": 2, "▁▁": 3, "a▁": 4}, "merges": ["▁ ▁", "▁ a")";
  EXPECT_EQ(pieces(*make(R"({"type": "BPE", )" + within + "]}"), "a▁▁▁a▁a"), "a|▁▁|▁a|▁a");
  EXPECT_EQ(pieces(*make(R"({"type": "BPE", )" + within + R"(, "a ▁"]})"), "aa▁a"), "a|a|▁a");
  const auto crossing = make(R"({"type": "BPE", "merges": ["a ▁", "▁ a"],
                                 "vocab": {"▁": 0, "a": 1, "▁a": 2, "a▁": 3}})");
  EXPECT_EQ(pieces(*crossing, "a▁a"), "a▁|a");
}

TEST(Bpe, EncodesAWordOfTenMegabytesQuickly) {
  const auto model = make(R"({"type": "BPE", "vocab": {"a": 0, "aa": 1, "aaaa": 2},
                              "merges": ["a a", "aa aa"]})");
  const std::string word(10'000'000, 'a');
  IdSink out;
  model->encode(word, 0, word.size(), out);
  EXPECT_EQ(out.ids, Ids(2'500'000, 2));
}

TEST(Bpe, RejectsInconsistentFiles) {
  const auto expect_corrupt = [](const std::string& message, const std::string& json) {
    expect_error(ErrorCode::corrupt_file, message, [&] { make(json); });
  };
  expect_corrupt("model: merges[0]: 'x' is not in the vocabulary",
                 R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a x"]})");
  expect_corrupt("'aa' is not in the vocabulary",
                 R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})");
  expect_corrupt("must be two tokens separated by a space, got 'a'",
                 R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})");
  expect_corrupt("must be two tokens", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]})");
  expect_corrupt("'merges' is missing", R"({"type": "BPE", "vocab": {}})");
}

TEST(WordPiece, IsGreedyLongestMatch) {
  const auto model = make(R"({"type": "WordPiece", "max_input_chars_per_word": 8,
      "vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "##a": 4, "a": 5, "é": 6, "##é": 7}})");
  EXPECT_EQ(pieces(*model, "unaffé"), "un|##aff|##é");
  EXPECT_EQ(pieces(*model, "unable"), "un|##able");
  EXPECT_EQ(pieces(*model, "unx"), "[UNK]");
  EXPECT_EQ(pieces(*model, "ééééé"), "é|##é|##é|##é|##é");
  EXPECT_EQ(pieces(*model, "aaaaaaaaa"), "[UNK]");  // nine characters
}

TEST(Unigram, MaximizesTheSumOfScores) {
  const auto model =
      make(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", 0], ["b", 0],
      ["c", 0], ["d", 0], ["cd", 1], ["ab", 2], ["abc", 5], ["abcd", 10]]})");
  EXPECT_EQ(pieces(*model, "abcdacdxx"), "abcd|a|cd|<unk>");
  EXPECT_EQ(pieces(*model, "abc"), "abc");
  EXPECT_EQ(pieces(*model, "éaé"), "<unk>|a|<unk>");
}

TEST(Unigram, FallsBackToBytes) {
  const auto model = make(R"({"type": "Unigram", "unk_id": 0, "byte_fallback": true,
      "vocab": [["<unk>", 0], ["a", -1], ["<0xC3>", -5], ["<0xA9>", -5]]})");
  EXPECT_EQ(pieces(*model, "aé"), "a|<0xC3>|<0xA9>");
  EXPECT_EQ(pieces(*model, "è"), "<unk>");
}

TEST(Unigram, RejectsInconsistentFiles) {
  expect_error(ErrorCode::corrupt_file, "must be a number from 0 to 0, got 7",
               [] { make(R"({"type": "Unigram", "unk_id": 7, "vocab": [["a", 0]]})"); });
  expect_error(ErrorCode::corrupt_file, "vocab[1]: must be a token and its score",
               [] { make(R"({"type": "Unigram", "vocab": [["a", 0], ["b"]]})"); });
  const auto model = make(R"({"type": "Unigram", "vocab": [["a", 0]]})");
  expect_error(ErrorCode::invalid_argument, "without an unknown token",
               [&] { pieces(*model, "b"); });
}

TEST(WordLevel, EncodesWholeWords) {
  const auto model = make(R"({"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "hi": 1}})");
  EXPECT_EQ(pieces(*model, "hi"), "hi");
  EXPECT_EQ(pieces(*model, "ho"), "?");
}

TEST(SubwordModel, DetectsTheTypeOfOldFiles) {
  EXPECT_EQ(pieces(*make(R"({"vocab": {"a": 0, "aa": 1}, "merges": ["a a"]})"), "aa"), "aa");
  EXPECT_EQ(pieces(*make(R"({"vocab": [["a", 0]]})"), "a"), "a");
  expect_error(ErrorCode::unsupported, "'Guess' is not supported",
               [] { make(R"({"type": "Guess", "vocab": {}})"); });
}

TEST(Vocabulary, RejectsBadIds) {
  const auto expect_corrupt = [](const std::string& message, const std::string& vocab) {
    expect_error(ErrorCode::corrupt_file, message,
                 [&] { make(R"({"type": "WordLevel", "vocab": )" + vocab + "}"); });
  };
  expect_corrupt("'a' and 'b' have the same id 3", R"({"a": 3, "b": 3})");
  expect_corrupt("must be a number from 0 to 16777215, got -1", R"({"a": -1})");
  expect_corrupt("got 99999999999", R"({"a": 99999999999})");
  expect_corrupt("must be a whole number, got a number", R"({"a": 1.5})");
  expect_corrupt("must be an object of tokens and ids, got a list", "[]");
}

}  // namespace
}  // namespace heed
