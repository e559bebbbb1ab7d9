#include <cmath>

#include "base/files/text_file.h"
#include "heed/metrics.h"
#include "infer/tasks/task_testing.h"
#include "model/files/tensor_file.h"

namespace heed {
namespace {

class EmbedTest : public TaskTest {};

double length_of(const std::vector<float>& vector) {
  double squares = 0;
  for (const float x : vector) squares += static_cast<double>(x) * x;
  return std::sqrt(squares);
}

TEST_F(EmbedTest, IsTheSameAloneAndAmongOthers) {
  const Model model = make(tiny(Head::none));
  const std::vector<TaskInput> inputs = many_texts(60);
  const auto together = Embedder(model, {.threads = 2}).embed(inputs);
  const auto in_batches = Embedder(model, {.threads = 1, .batch_tokens = 40}).embed(inputs);
  const Embedder alone(model, {.threads = 1});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_NEAR(length_of(together[i].vector), 1, 1e-6);
    EXPECT_EQ(together[i].vector, in_batches[i].vector) << i;
    EXPECT_EQ(together[i].vector, alone.embed({inputs[i]})[0].vector) << i;
  }
}

TEST_F(EmbedTest, PoolsAsAsked) {
  const Embedder embedder(make(tiny(Head::none)), {.threads = 1});
  const std::vector<TaskInput> one = {{.ids = {6}}}, three = {{.ids = {2, 6, 3}}};
  const auto vector = [&](const std::vector<TaskInput>& inputs, EmbedPooling pooling) {
    return embedder.embed(inputs, {.pooling = pooling, .normalize = false})[0].vector;
  };
  // Of one token all are the same; of three they differ.
  EXPECT_EQ(vector(one, EmbedPooling::mean), vector(one, EmbedPooling::first));
  EXPECT_EQ(vector(one, EmbedPooling::mean), vector(one, EmbedPooling::last));
  EXPECT_NE(vector(three, EmbedPooling::mean), vector(three, EmbedPooling::first));
  EXPECT_NE(vector(three, EmbedPooling::first), vector(three, EmbedPooling::last));
  EXPECT_GT(length_of(vector(three, EmbedPooling::mean)), 1.5);
}

TEST_F(EmbedTest, ReadsALongTextInChunks) {
  const Embedder embedder(make(tiny(Head::none)), {.threads = 1});
  const TaskInput text{.text = "the cat sat on the mat ."};  // 7 tokens: parts of 4 and 3
  const Embedded whole = embedder.embed(
      {text}, {.normalize = false, .long_text = LongText::chunks, .max_tokens = 6})[0];
  EXPECT_EQ(whole.chunks, 2);
  EXPECT_EQ(whole.tokens, 11);
  EXPECT_FALSE(whole.truncated);
  const auto parts =
      embedder.embed({{.text = "the cat sat on"}, {.text = "the mat ."}}, {.normalize = false});
  for (size_t c = 0; c < whole.vector.size(); ++c) {
    EXPECT_NEAR(whole.vector[c], (6 * parts[0].vector[c] + 5 * parts[1].vector[c]) / 11, 1e-5);
  }
  const Embedded cut = embedder.embed({text}, {.normalize = false, .max_tokens = 6})[0];
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.vector, parts[0].vector);
}

TEST_F(EmbedTest, CutsWhatIsLongerThanThePositions) {
  const Embedder embedder(make(tiny(Head::none)), {.threads = 1});
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "the cat ";
  const Embedded embedded = embedder.embed({{.text = text}})[0];
  EXPECT_TRUE(embedded.truncated);
  EXPECT_EQ(embedded.tokens, 24);
}

TEST_F(EmbedTest, EmbedsDecodersAndEncodersOfTwo) {
  ModelConfig config = tiny(Head::language_model);
  for (const Family family : {Family::decoder_only, Family::encoder_decoder}) {
    config.family = family;
    config.token_types = 0, config.pooler = false;
    config.decoder_layers = 2;
    const Embedder embedder(make(config), {.threads = 1});
    EXPECT_EQ(embedder.embed({{.text = "the cat"}})[0].vector.size(), size_t{32});
  }
}

TEST_F(EmbedTest, FollowsTheFilesOfSentenceTransformers) {
  EXPECT_EQ(embed_options(folder_).pooling, EmbedPooling::mean);
  EXPECT_TRUE(embed_options(folder_).normalize);
  const std::string transformer =
      R"({"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"})";
  const std::string pooling =
      R"({"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})";
  std::filesystem::create_directories(path("1_Pooling"));
  write("1_Pooling/config.json", R"({"word_embedding_dimension": 32, "pooling_mode_cls_token": true,
                                     "pooling_mode_mean_tokens": false})");
  write("modules.json", "[" + transformer + ", " + pooling + "]");
  write("sentence_bert_config.json", R"({"max_seq_length": 256})");
  EXPECT_EQ(embed_options(folder_).pooling, EmbedPooling::first);
  EXPECT_FALSE(embed_options(folder_).normalize);
  EXPECT_EQ(embed_options(folder_).max_tokens, 256);
  write("modules.json", "[" + transformer + ", " + pooling +
                            R"(, {"type": "sentence_transformers.models.Normalize"}])");
  EXPECT_TRUE(embed_options(folder_).normalize);
  write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  expect_error(ErrorCode::unsupported, "pooling_mode_max_tokens", [&] { embed_options(folder_); });
  write("modules.json",
        R"([{"path": "../other", "type": "sentence_transformers.models.Pooling"}])");
  expect_error(ErrorCode::corrupt_file, "outside of the model's folder",
               [&] { embed_options(folder_); });
  write("modules.json", R"([{"type": "sentence_transformers.models.Dense"}])");
  expect_error(ErrorCode::unsupported, "Dense", [&] { embed_options(folder_); });
  // What the file says must not take the stack to look at.
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  write("sentence_bert_config.json", "{\"max_seq_length\": " + deep + "}");
  expect_error(ErrorCode::corrupt_file, "nested too deeply", [&] { embed_options(folder_); });
  write("sentence_bert_config.json", "{}");
  write("modules.json", "{");
  expect_error(ErrorCode::corrupt_file, "modules.json", [&] { embed_options(folder_); });
}

TEST_F(EmbedTest, WritesVectorsAsATensor) {
  write_embeddings(path("v.safetensors"), {{1, 2, 3}, {4, 5, 6}});
  const TensorFile file = TensorFile::open(path("v.safetensors"));
  const TensorView* tensor = file.find("embeddings");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> values(6);
  copy_as_f32(*tensor, values.data());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(CosineSimilarity, IsThatOfTheAngle) {
  EXPECT_DOUBLE_EQ(cosine_similarity({2, 0}, {5, 0}), 1);
  EXPECT_DOUBLE_EQ(cosine_similarity({1, 0}, {0, 3}), 0);
  EXPECT_NEAR(cosine_similarity({1, 1}, {-1, 0}), -std::sqrt(0.5), 1e-12);
  EXPECT_EQ(cosine_similarity({0, 0}, {1, 0}), 0);
  expect_error(ErrorCode::invalid_argument, "2 and 1", [] { cosine_similarity({1, 2}, {1}); });
}

TEST(SharedModels, MiniLmKnowsWhichSentencesAreAlike) {
  const std::string folder = HEED_SHARED "/golden/models-real/minilm-l6-v2";
  const std::string pairs = HEED_SHARED "/data/stsb/stsb-en-dev.csv";
  if (!std::filesystem::exists(folder) || !std::filesystem::exists(pairs)) {
    GTEST_SKIP() << "needs " << folder << " and " << pairs;
  }
  LineReader input(pairs);
  std::vector<TaskInput> texts;
  std::vector<double> gold;
  for (std::string line; input.next(line);) {
    if (line.find('"') != line.npos) continue;  // quoted columns: `heed embed --csv` reads them
    const size_t first = line.find(','), second = line.find(',', first + 1);
    texts.push_back({.text = line.substr(0, first)});
    texts.push_back({.text = line.substr(first + 1, second - first - 1)});
    gold.push_back(std::stod(line.substr(second + 1)));
  }
  ASSERT_GT(gold.size(), size_t{900});
  const auto vectors = Embedder(Model::load(folder)).embed(texts);
  std::vector<double> similarity;
  for (size_t i = 0; i < gold.size(); ++i) {
    similarity.push_back(cosine_similarity(vectors[2 * i].vector, vectors[2 * i + 1].vector));
  }
  EXPECT_GE(spearman(gold, similarity), 0.86);
}

}  // namespace
}  // namespace heed
