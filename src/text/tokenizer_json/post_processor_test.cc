#include "text/tokenizer_json/post_processor.h"

#include "base/files/file_testing.h"

namespace heed {
namespace {

PostProcessor make(const std::string& json) {
  const auto document = nlohmann::json::parse(json);
  return read_post_processor(JsonNode(document, "post_processor"));
}

using Ids = std::vector<int32_t>;

Encoding text(const Ids& ids) {
  Encoding encoding;
  encoding.ids = ids;
  encoding.offsets.resize(ids.size(), {1, 2});
  return encoding;
}

Encoding single(const PostProcessor& processor, bool special) {
  Encoding out;
  processor.apply(text({10, 11}), nullptr, special, out);
  Ids ids;
  processor.apply(Ids{10, 11}, special, ids);
  EXPECT_EQ(out.ids, ids);
  EXPECT_EQ(out.types.size(), out.ids.size());
  EXPECT_EQ(out.offsets.size(), out.ids.size());
  return out;
}

Encoding pair(const PostProcessor& processor, bool special) {
  Encoding out;
  const Encoding second = text({20});
  processor.apply(text({10, 11}), &second, special, out);
  return out;
}

TEST(PostProcessor, DefaultJoins) {
  EXPECT_EQ(single(make("null"), true).ids, (Ids{10, 11}));
  EXPECT_TRUE(make("null").is_plain());
  const Encoding both = pair(make("null"), true);
  EXPECT_EQ(both.ids, (Ids{10, 11, 20}));
  EXPECT_EQ(both.types, (Ids{0, 0, 1}));
}

TEST(PostProcessor, Bert) {
  const PostProcessor bert =
      make(R"({"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]})");
  const Encoding one = single(bert, true);
  EXPECT_EQ(one.ids, (Ids{1, 10, 11, 2}));
  EXPECT_EQ(one.is_special, (std::vector<uint8_t>{1, 0, 0, 1}));
  EXPECT_EQ(one.offsets[0], (TextSpan{}));
  EXPECT_EQ(one.offsets[1], (TextSpan{1, 2}));
  EXPECT_EQ(one.offsets[3], (TextSpan{2, 2}));
  EXPECT_EQ(single(bert, false).ids, (Ids{10, 11}));
  const Encoding both = pair(bert, true);
  EXPECT_EQ(both.ids, (Ids{1, 10, 11, 2, 20, 2}));
  EXPECT_EQ(both.types, (Ids{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(pair(bert, false).types, (Ids{0, 0, 1}));
}

TEST(PostProcessor, Roberta) {
  const PostProcessor roberta = make(
      R"({"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": false})");
  EXPECT_EQ(pair(roberta, true).ids, (Ids{1, 10, 11, 2, 2, 20, 2}));
  EXPECT_EQ(pair(roberta, true).types, Ids(7, 0));
  EXPECT_FALSE(roberta.trim_offsets);
}

constexpr const char* kTemplate = R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "x", "type_id": 3}}, {"Sequence": {"id": "A", "type_id": 4}}],
    "pair": [{"Sequence": {"id": "B", "type_id": 5}}, {"Sequence": {"id": "A", "type_id": 6}}],
    "special_tokens": {"x": {"id": "x", "ids": [7, 8], "tokens": ["x", "y"]}}})";

TEST(PostProcessor, Template) {
  const PostProcessor made = make(kTemplate);
  EXPECT_EQ(single(made, true).ids, (Ids{7, 8, 10, 11}));
  EXPECT_EQ(single(made, true).types, (Ids{3, 3, 4, 4}));
  EXPECT_EQ(pair(made, true).ids, (Ids{20, 10, 11}));
  EXPECT_EQ(pair(made, true).types, (Ids{5, 6, 6}));
}

TEST(PostProcessor, Sequence) {
  const PostProcessor made = make(R"({"type": "Sequence", "processors": [
      {"type": "ByteLevel", "trim_offsets": true}, )" +
                                  std::string(kTemplate) + "]}");
  EXPECT_TRUE(made.trim_offsets);
  EXPECT_EQ(single(made, true).ids, (Ids{7, 8, 10, 11}));
}

TEST(PostProcessor, RejectsInvalidFiles) {
  expect_error(ErrorCode::unsupported, "'Wrap' is not supported",
               [] { make(R"({"type": "Wrap"})"); });
  expect_error(ErrorCode::corrupt_file, "'x' is missing", [] {
    make(R"({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
             "single": [{"SpecialToken": {"id": "x", "type_id": 0}}]})");
  });
  expect_error(ErrorCode::corrupt_file, "'B' must be a text of this template", [] {
    make(R"({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
             "single": [{"Sequence": {"id": "B", "type_id": 0}}]})");
  });
  const std::string twice = std::string(kTemplate) + "," + kTemplate;
  expect_error(ErrorCode::unsupported, "a second template",
               [&] { make(R"({"type": "Sequence", "processors": [)" + twice + "]}"); });
}

}  // namespace
}  // namespace heed
