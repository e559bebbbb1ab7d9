#include "data/records/example.h"

#include <bit>

#include "base/files/file_testing.h"
#include "data/batches/batch.h"
#include "data/batches/tokenizer_testing.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int32_t kX = kIgnoreLabel;

const TestingTokenizer kPlain({"a", "b", "c", "d", "to", "__de__", "##b", "##c"});
const TestingTokenizer kBert({"a", "b", "c", "d", "to", "__de__", "##b", "##c"}, true);
enum : int32_t { a = TestingTokenizer::kFirstPiece, b, c, d, to, de, _b, _c };
enum : int32_t { pad, end, unk, mask, cls, sep };

Record pair(const std::string& first, const std::string& second) {
  Record record;
  record.first = first;
  record.second = second;
  record.has_second = true;
  return record;
}

EncodedExample encode(const Tokenizer& tokenizer, const Record& record,
                      const ObjectiveOptions& objective, const FilterOptions& filters = {},
                      const CorpusOptions& corpus = {}) {
  return ExampleEncoder(tokenizer, corpus, objective, filters).encode(record);
}

TEST(Example, TranslationEndsBothSidesOnce) {
  const auto example = encode(kPlain, pair("a b", "c"), {.kind = Objective::translation});
  EXPECT_THAT(example.first, ElementsAre(a, b, end));
  EXPECT_THAT(example.second, ElementsAre(c, end));
  // A template without an end gets one on the target.
  const auto bert = encode(kBert, pair("a b", "c"), {.kind = Objective::translation});
  EXPECT_THAT(bert.second, ElementsAre(cls, c, sep, end));
}

TEST(Example, TranslationAddsPrefixes) {
  CorpusOptions corpus;
  corpus.source_prefix = "to d ";
  corpus.target_prefix = "__de__";
  const auto example = encode(kPlain, pair("a", "c"), {.kind = Objective::translation}, {}, corpus);
  EXPECT_THAT(example.first, ElementsAre(to, d, a, end));
  EXPECT_THAT(example.second, ElementsAre(de, c, end));
  corpus.target_prefix = "__xx__";
  expect_error(ErrorCode::invalid_argument, "__xx__", [&] {
    encode(kPlain, pair("a", "c"), {.kind = Objective::translation}, {}, corpus);
  });
}

TEST(Example, FiltersByLengthAndRatio) {
  const ObjectiveOptions translation{.kind = Objective::translation};
  const auto skip = [&](const char* first, const char* second, const FilterOptions& filters) {
    return encode(kPlain, pair(first, second), translation, filters).skip;
  };
  EXPECT_EQ(skip("a b c", "a", {.max_tokens = 4}), std::nullopt);
  EXPECT_EQ(skip("a b c d", "a", {.max_tokens = 4}), Skip::too_long);
  EXPECT_EQ(skip("a", "a b c d", {.max_tokens = 4}), Skip::too_long);
  EXPECT_EQ(skip("a", "a b", {.min_tokens = 3}), Skip::too_short);
  EXPECT_EQ(skip("a", "a b c", {.max_ratio = 2}), std::nullopt);  // 4 : 2 with the ends
  EXPECT_EQ(skip("a", "a b c d", {.max_ratio = 2}), Skip::ratio);
}

TEST(Example, CausalDocumentsHaveAnEndToken) {
  Record record;
  record.first = "a b";
  EXPECT_THAT(encode(kPlain, record, {.kind = Objective::causal_lm}).first, ElementsAre(a, b, end));
  record.ends_document = false;
  EXPECT_THAT(encode(kPlain, record, {.kind = Objective::causal_lm}).first, ElementsAre(a, b));
  EXPECT_THAT(encode(kPlain, record, {.kind = Objective::causal_lm, .begin_id = d}).first,
              ElementsAre(d, a, b));
}

TEST(Example, DocumentsHaveSentenceStarts) {
  Record record;
  record.first = "a b c d a";
  record.sentences = {3, 7};
  const auto example = encode(kPlain, record, {.kind = Objective::denoising});
  EXPECT_THAT(example.first, ElementsAre(a, b, c, d, a));
  EXPECT_THAT(example.second, ElementsAre(2, 4));
  EXPECT_THAT(encode(kPlain, record, {.kind = Objective::span_corruption}).second, IsEmpty());
}

TEST(Example, ClassificationKeepsTypesAndLabel) {
  Record record = pair("a b", "c");
  record.label = "yes";
  const auto example = encode(kBert, record, {.kind = Objective::classification});
  EXPECT_THAT(example.first, ElementsAre(cls, a, b, sep, c, sep));
  EXPECT_THAT(example.second, ElementsAre(4, 0));
  EXPECT_THAT(example.labels, ElementsAre("yes"));
  record.has_second = false;
  EXPECT_THAT(encode(kBert, record, {.kind = Objective::classification}).second,
              ElementsAre(4, 0));  // none of type 1: the end
}

TEST(Example, TruncatesTheLongerTextFirst) {
  Record record = pair("a b c d", "c d");
  record.label = "yes";
  const auto cut = [&](int64_t max_tokens) {
    return encode(kBert, record, {.kind = Objective::classification}, {.max_tokens = max_tokens});
  };
  EXPECT_FALSE(cut(9).truncated);
  EXPECT_THAT(cut(8).first, ElementsAre(cls, a, b, c, sep, c, d, sep));
  EXPECT_TRUE(cut(8).truncated);
  EXPECT_THAT(cut(8).second, ElementsAre(5, 0));
  EXPECT_THAT(cut(5).first, ElementsAre(cls, a, sep, c, sep));
  EXPECT_EQ(cut(2).skip, Skip::too_long);  // less than the template alone
}

TEST(Example, RegressionKeepsTheScoresBits) {
  Record record = pair("a", "b");
  record.label = " 3.25";
  const auto example = encode(kBert, record, {.kind = Objective::regression});
  EXPECT_EQ(std::bit_cast<float>(example.second[1]), 3.25f);
  for (const char* bad : {"", "x", "3,5", "nan", "1e999"}) {
    record.label = bad;
    EXPECT_EQ(encode(kBert, record, {.kind = Objective::regression}).skip, Skip::malformed) << bad;
  }
  record.label = "positive";
  EXPECT_EQ(encode(kBert, record, {.kind = Objective::regression}).why,
            "the label must be a number for regression, got 'positive'");
}

TEST(Example, TagsTheFirstPieceOfAWord) {
  Record record;
  record.words = {"abc", "d", "ab"};
  record.tags = {"N", "V", "N"};
  const auto example = encode(kBert, record, {.kind = Objective::tagging});
  EXPECT_THAT(example.first, ElementsAre(cls, a, _b, _c, d, a, _b, sep));
  EXPECT_THAT(example.second, ElementsAre(kX, 0, kX, kX, 1, 2, kX, kX));
  EXPECT_THAT(example.labels, ElementsAre("N", "V", "N"));
  const auto cut = encode(kBert, record, {.kind = Objective::tagging}, {.max_tokens = 5});
  EXPECT_THAT(cut.first, ElementsAre(cls, a, _b, _c, sep));
  EXPECT_THAT(cut.labels, ElementsAre("N"));
  EXPECT_TRUE(cut.truncated);
}

TEST(Example, NamesAMissingToken) {
  const TestingTokenizer tokenizer({"a"});
  class Bare final : public Tokenizer {
   public:
    explicit Bare(const Tokenizer& t) : t_(t) {}
    Encoding encode(std::string_view s, const EncodeOptions& o = {}) const override {
      return t_.encode(s, o);
    }
    Encoding encode_pair(std::string_view s, std::string_view u,
                         const EncodeOptions& o = {}) const override {
      return t_.encode_pair(s, u, o);
    }
    std::vector<int32_t> encode_ids(std::string_view s,
                                    const EncodeOptions& o = {}) const override {
      return t_.encode_ids(s, o);
    }
    std::string decode(std::span<const int32_t> ids, const DecodeOptions& o = {}) const override {
      return t_.decode(ids, o);
    }
    int64_t vocabulary_size() const override { return t_.vocabulary_size(); }
    std::string piece(int32_t id) const override { return t_.piece(id); }
    std::optional<int32_t> find(std::string_view p) const override { return t_.find(p); }
    const SpecialIds& special_ids() const override { return none_; }
    bool begins_word(int32_t id) const override { return t_.begins_word(id); }
    void save(const std::string&) const override {}

   private:
    const Tokenizer& t_;
    SpecialIds none_;
  };
  const Bare bare(tokenizer);
  expect_error(ErrorCode::invalid_argument, "first token for the decoder",
               [&] { resolve_role_ids({.kind = Objective::translation}, bare); });
  expect_error(ErrorCode::invalid_argument, "a mask token",
               [&] { resolve_role_ids({.kind = Objective::masked_lm}, bare); });
  expect_error(ErrorCode::invalid_argument, "must be below the vocabulary size",
               [&] { resolve_role_ids({.kind = Objective::masked_lm, .mask_id = 7}, bare); });
  EXPECT_EQ(resolve_role_ids({.kind = Objective::masked_lm, .mask_id = 6}, bare).mask, 6);
}

}  // namespace
}  // namespace heed
