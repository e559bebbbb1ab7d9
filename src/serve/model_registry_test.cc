#include "serve/model_registry.h"

#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

class ModelRegistryTest : public ServeTest {};

TEST_F(ModelRegistryTest, KnowsLanguagesByName) {
  ModelRegistry registry({.threads = 1, .kv_memory_bytes = 1 << 20});
  const std::string folder = make_model("en-de");
  registry.load("opus-mt-fr-nl", folder);
  registry.load("plain", folder);
  EXPECT_EQ(registry.find("opus-mt-fr-nl")->languages().sources, std::set<std::string>{"fr"});
  EXPECT_EQ(registry.find("opus-mt-fr-nl")->languages().targets, std::set<std::string>{"nl"});
  EXPECT_EQ(registry.find("plain")->languages().targets,
            std::set<std::string>{"de"});  // the folder's
  EXPECT_EQ(registry.find("other"), nullptr);
}

TEST_F(ModelRegistryTest, KeepsAModelForThoseWhoHoldIt) {
  ModelRegistry registry({.threads = 1, .kv_memory_bytes = 1 << 20});
  registry.load("gpt", make_model("gpt"));
  const ServedModelPtr held = registry.find("gpt");
  EXPECT_TRUE(registry.unload("gpt"));
  EXPECT_FALSE(registry.unload("gpt"));
  EXPECT_TRUE(registry.all().empty());
  EXPECT_EQ(held->engine()->submit({.text = "the cat"}).get().answers.size(), 1U);
}

// Without a tokenizer only prompts of ids are possible; a model that takes text alone is refused.
TEST_F(ModelRegistryTest, ListsOnlyWhatAModelWithoutTokenizerCanDo) {
  ModelRegistry registry({.threads = 1, .kv_memory_bytes = 1 << 20});
  registry.load("gpt", kGoldenFolder + "models/gpt2");
  EXPECT_EQ(registry.find("gpt")->abilities(), std::vector<std::string>{"generate"});
  expect_error(ErrorCode::unsupported, "no supported tokenizer",
               [&] { registry.load("bert", kGoldenFolder + "models/bert-mlm"); });
  EXPECT_EQ(registry.find("bert"), nullptr);
  registry.load("own", make_model("gpt"));
  EXPECT_EQ(registry.find("own")->abilities(),
            (std::vector<std::string>{"generate", "score", "embed", "attend", "tokenize"}));
}

TEST_F(ModelRegistryTest, NamesFolders) {
  EXPECT_EQ(default_model_name("models/en-de/"), "en-de");
  EXPECT_EQ(default_model_name("./gpt2"), "gpt2");
  expect_error(ErrorCode::invalid_argument, "cannot be a model's name",
               [] { check_model_name("a b"); });
}

}  // namespace
}  // namespace heed::serve
