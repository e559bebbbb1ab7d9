#include "train/recipe/recipe.h"

#include <map>

#include "base/files/file_testing.h"
#include "model/config.h"

namespace heed {
namespace {

using testing::HasSubstr;

const std::string kSmall = R"([model]
preset = "transformer-tiny"
dropout = 0.2   # ours

[data]
train = ["a.en", "a.de"]
batch_tokens = 2048

[objective]
kind = "translation"
label_smoothing = 0.1

[schedule]
kind = "noam"
warmup_steps = 400

[train]
steps = 1000
)";

TEST(Recipe, ReadsEverySectionAndKeepsDefaults) {
  const Recipe r = parse_recipe(kSmall, "small.toml");
  EXPECT_EQ(r.model.preset, "transformer-tiny");
  EXPECT_EQ(r.data.corpus.files, (std::vector<std::string>{"a.en", "a.de"}));
  EXPECT_EQ(r.data.batch_tokens, 2048);
  EXPECT_EQ(r.objective.options.kind, Objective::translation);
  EXPECT_FLOAT_EQ(r.objective.loss.label_smoothing, 0.1f);
  EXPECT_EQ(r.schedule.kind, ScheduleKind::noam);
  EXPECT_EQ(r.train.steps, 1000);
  EXPECT_EQ(r.train.accumulate, 1);
  const ModelConfig config = recipe_model_config(r);
  EXPECT_FLOAT_EQ(config.dropout, 0.2f);
  EXPECT_FLOAT_EQ(config.embedding_dropout, 0.3f);  // the preset's
  EXPECT_EQ(config.width, 128);
}

TEST(Recipe, SetChangesAndSaysSo) {
  const Recipe r = parse_recipe(
      kSmall, "dir/small.toml",
      {"train.steps=7", "model.position=rope", "data.train=[\"x\"]", "train.out=runs/a b",
       "optimizer.learning_rate=5e-4", "model.dropout=0", "model.preset=gpt2"});
  EXPECT_EQ(r.train.steps, 7);
  EXPECT_EQ(r.train.out, "runs/a b");
  EXPECT_EQ(r.data.corpus.files, (std::vector<std::string>{"x"}));
  EXPECT_DOUBLE_EQ(r.optimizer.learning_rate, 5e-4);
  EXPECT_EQ(recipe_model_config(r).position, Position::rope);
  EXPECT_EQ(recipe_model_config(r).dropout, 0);
  EXPECT_EQ(r.origin("train.steps"), "--set");
  EXPECT_EQ(r.origin("data.batch_tokens"), "small.toml:7");
  EXPECT_EQ(r.origin("train.seed"), "default");
}

TEST(Recipe, ABareNumberOfSetIsATextWhereOneIsWanted) {
  const std::string text =
      "[model]\npreset = \"gpt2\"\n[data]\ntrain = \"x\"\n[train]\nsteps = 1\n"
      "[objective]\nkind = \"causal_lm\"\n";
  const Recipe recipe =
      parse_recipe(text, "r.toml", {"data.label_column=9", "data.train=2024", "train.out=1e3"});
  EXPECT_EQ(recipe.data.corpus.label_column, "9");
  EXPECT_EQ(recipe.data.corpus.files, std::vector<std::string>{"2024"});
  EXPECT_EQ(recipe.train.out, "1e3");  // as it was written
  expect_error(ErrorCode::invalid_argument, "must be a string in quotes",
               [&] { parse_recipe(text + "[validate]\nmetric = 9\n", "r.toml", {}); });
}

TEST(Recipe, SaysAllThatIsWrongAtOnce) {
  try {
    parse_recipe(R"([model]
preset = "transformer-tiny"
witdh = 64
[data]
train = "a.txt"
batch_tokens = "many"
[trian]
steps = 3
[optimizer]
kind = "sgd"
)",
                 "dir/bad.toml", {"train.stepz=4", "oops"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    const std::string what = error.what();
    EXPECT_THAT(what, testing::StartsWith("dir/bad.toml: 6 problems\n  - dir/bad.toml:"));
    EXPECT_THAT(what,
                HasSubstr("\n  - dir/bad.toml:3: unknown key model.witdh (did you mean width?)"));
    EXPECT_THAT(what, HasSubstr("bad.toml:6: data.batch_tokens must be a whole"));
    EXPECT_THAT(what, HasSubstr("unknown section trian (did you mean train?)"));
    EXPECT_THAT(what, HasSubstr("optimizer.kind must be one of adam or adamw, got \"sgd\""));
    EXPECT_THAT(what, HasSubstr("--set: unknown key train.stepz (did you mean steps?)"));
    EXPECT_THAT(what, HasSubstr("--set must be section.key=value, got oops"));
  }
}

TEST(Recipe, ChecksWhatCannotBe) {
  const auto problem = [](const std::vector<std::string>& sets, const std::string& what) {
    expect_error(ErrorCode::invalid_argument, what, [&] { parse_recipe(kSmall, "r", sets); });
  };
  problem({"train.steps=\xff"}, "--set must be UTF-8");
  problem({"train.steps=0"}, "[train] must have steps or epochs, got neither");
  problem({"optimizer.beta2=1"}, "optimizer.beta2 must be at least 0 and below 1, got 1.0");
  problem({"validate.metric=blue"}, "did you mean bleu?");
  problem({"validate.patience=2"}, "without validate.files");
  problem({"train.accumulate=0", "data.batch_tokens=0"},
          "data.batch_tokens must be at least 1, got 0");
  problem({"train.steps=99999999999999999999"}, "train.steps");
  problem({"train.steps=0", "train.epochs=1e18"}, "train.epochs must be at most");
  problem({"train.accumulate=4097"}, "train.accumulate must be at most 4096, got 4097");
  problem({"schedule.steps=-1"}, "schedule.steps must be at least 0, got -1");
  problem({"schedule.final_learning_rate=-1e-3"},
          "schedule.final_learning_rate must be at least 0.0, got -0.001");
  problem({"objective.soft_weight=-1"}, "objective.soft_weight must be at least 0.0, got -1.0");
  problem({"objective.r_drop=nan"}, "--set: objective.r_drop must be a finite number, got nan");
  problem({"optimizer.learning_rate=-inf"}, "learning_rate must be a finite number, got -inf");
  problem({"model.dropout=inf"}, "model.dropout must be a finite number, got inf");
}

// Before a corpus is prepared, not after.
TEST(Recipe, ChecksWhatAnObjectiveCannotBe) {
  const auto problem = [](const std::vector<std::string>& sets, const std::string& what) {
    expect_error(ErrorCode::invalid_argument, what, [&] { parse_recipe(kSmall, "r", sets); });
  };
  problem({"data.tree_words=tags"},
          "data.tree_words must be unset unless objective.kind is parsing, got translation");
  problem({"objective.subword_dropout=1.5"}, "objective.subword_dropout must be between 0");
  problem({"objective.subword_dropout=-0.1"}, "objective.subword_dropout must be between 0");
  problem({"objective.subword_dropout=0.1", "objective.kind=parsing"},
          "objective.subword_dropout must be 0 unless objective.kind is translation, got parsing");
  problem({"objective.r_drop=-1"}, "objective.r_drop must be at least 0.0, got -1.0");
  problem({"objective.r_drop=5", "objective.kind=tagging"},
          "objective.r_drop must be 0 for tagging");
  problem({"objective.r_drop=5", "objective.teacher=x"},
          "objective.r_drop must be 0 with objective.teacher");
  const std::vector<std::string> without{"objective.r_drop=5", "model.dropout=0",
                                         "model.embedding_dropout=0", "model.attention_dropout=0",
                                         "model.activation_dropout=0"};
  problem(without, "objective.r_drop must be 0 for a model without dropout");
  problem({"objective.r_drop=5", "model.logits_soft_cap=30"}, "model.logits_soft_cap");
  // A config that only the folder has is checked elsewhere.
  std::vector<std::string> from = without;
  from.insert(from.end(), {"model.preset=\"\"", "model.from=x"});
  EXPECT_EQ(parse_recipe(kSmall, "r", from).objective.loss.r_drop, 5);
  EXPECT_EQ(parse_recipe(kSmall, "r", {"objective.r_drop=5", "objective.subword_dropout=1"})
                .objective.options.subword_dropout,
            1);
}

// Which --set resolves a conflict, and where its two sides are.
TEST(Recipe, ConflictsHaveAWayOut) {
  const auto problem = [](const std::vector<std::string>& sets, const std::string& what,
                          const std::string& hint) {
    try {
      parse_recipe(kSmall, "dir/r.toml", sets);
      FAIL() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), what);
      EXPECT_THAT(error.hint(), HasSubstr(hint));
    }
  };
  problem({"model.from=DIR"},
          "--set: [model] must have either preset or from, got both: "
          "model.preset = \"transformer-tiny\" (r.toml:2) and model.from = \"DIR\" (--set)",
          "--set model.preset= fine-tunes");
  problem({"train.epochs=2"},
          "dir/r.toml:18: [train] must have either steps or epochs, got both: "
          "train.steps = 1000 (r.toml:18) and train.epochs = 2.0 (--set)",
          "--set train.steps=0 for the epochs");
  problem({"model.preset=transformer-tny"},
          "--set: model.preset must be the name of a preset, got \"transformer-tny\" (did you mean "
          "transformer-tiny?)",
          "heed presets");
  problem({"model.width=wide"}, "--set: model.width must be a whole number, got \"wide\"",
          "model.width: d_model");
  problem({"tokenizer.type=bqe"},
          "--set: tokenizer.type must be bpe, unigram, byte-bpe, roberta, wordpiece, char or byte, "
          "got 'bqe' (did you mean bpe?)",
          "tokenizer.type:");
  problem({"train.stpes=3"}, "--set: unknown key train.stpes (did you mean steps?)", "lists every");
}

// The embeddings of model.from belong to its vocabulary.
TEST(Recipe, DoesNotTrainATokenizerForAPretrainedModel) {
  const std::vector<std::string> from{"model.preset=", "model.from=DIR"};
  EXPECT_EQ(parse_recipe(kSmall, "r.toml", from).model.from, "DIR");
  std::vector<std::string> sets = from;
  sets.insert(sets.end(), {"tokenizer.type=wordpiece", "tokenizer.vocabulary=8000"});
  expect_error(ErrorCode::invalid_argument,
               "[tokenizer] must not train a new tokenizer with model.from",
               [&] { parse_recipe(kSmall, "r.toml", sets); });
  sets.emplace_back("tokenizer.type=");
  EXPECT_EQ(parse_recipe(kSmall, "r.toml", sets).tokenizer.type, "");
}

TEST(Recipe, ShowsTheValuesOfEveryEnum) {
  std::map<std::string, std::vector<std::string>> values;
  for (const TrainSetting& s : resolved_settings(parse_recipe(kSmall, "r.toml"))) {
    values[s.section + "." + s.key] = s.values;
  }
  using testing::Contains, testing::ElementsAre;
  EXPECT_THAT(values["data.format"], ElementsAre("automatic", "text", "parallel", "tsv", "csv",
                                                 "jsonl", "labelled", "conll", "brackets"));
  EXPECT_THAT(values["objective.kind"], Contains("regression"));
  EXPECT_THAT(values["schedule.kind"], Contains("noam"));
  EXPECT_THAT(values["model.position"], Contains("rope"));
  EXPECT_THAT(values["tokenizer.type"], Contains("wordpiece"));
  EXPECT_THAT(values["validate.metric"], Contains("bleu"));
  EXPECT_THAT(values["train.steps"], testing::IsEmpty());
}

TEST(Recipe, SyntaxErrorsNameTheLine) {
  for (const char* text : {"[model]\npreset = \"bert\nheads = 2\n", "[model]\npreset = \"bert",
                           "[model]\npreset = \"bert # it's\n", "[model]\npreset = 'bert\n"}) {
    expect_error(ErrorCode::invalid_argument,
                 "r.toml:2: the quote in column 10 must be closed on its line",
                 [&] { parse_recipe(text, "r.toml"); });
  }

  expect_error(ErrorCode::invalid_argument, "r.toml:2",
               [] { parse_recipe("[a]\nb = = 1", "r.toml"); });
  expect_error(ErrorCode::invalid_argument, "must be in a section",
               [] { parse_recipe("steps = 1", "r.toml"); });
  expect_error(ErrorCode::not_found, "no-such.toml", [] { read_recipe("no-such.toml"); });
}

TEST(Recipe, TakesSeveralCorpora) {
  const Recipe r = parse_recipe(R"([model]
preset = "t5-small"
[[data.corpora]]
files = ["a.en", "a.de"]
source_prefix = "translate English to German: "
[[data.corpora]]
files = ["b.tsv"]
format = "tsv"
weight = 2
[train]
epochs = 1.5
)",
                                "two.toml");
  ASSERT_EQ(r.data.corpora.size(), 2u);
  EXPECT_EQ(r.data.corpora[0].source_prefix, "translate English to German: ");
  EXPECT_EQ(r.data.corpora[1].format, CorpusFormat::tsv);
  EXPECT_EQ(r.data.corpora[1].weight, 2);
  EXPECT_EQ(r.train.epochs, 1.5);
  expect_error(ErrorCode::invalid_argument, "unknown key wieght (did you mean weight?)",
               [] { parse_recipe("[[data.corpora]]\nfiles = 'x'\nwieght = 1", "r.toml"); });
}

TEST(Recipe, ResolvedSettingsAreARecipeAgain) {
  const Recipe r = parse_recipe(kSmall, "small.toml", {"train.keep_last=3"});
  std::string text, section;
  bool has_default = false;
  for (const TrainSetting& s : resolved_settings(r)) {
    if (s.section != section) text += "[" + (section = s.section) + "]\n";
    text += s.key + " = " + s.value + "  # " + s.origin + "\n";
    EXPECT_FALSE(s.help.empty()) << s.key;
    has_default = has_default || s.origin == "default";
  }
  EXPECT_TRUE(has_default);
  EXPECT_THAT(text, HasSubstr("keep_last = 3  # --set"));
  EXPECT_THAT(text, HasSubstr("dropout = 0.2  # small.toml:3"));
  EXPECT_THAT(text, HasSubstr("width = 128  # preset transformer-tiny"));
  EXPECT_THAT(text, HasSubstr("eps = 1e-09  # default"));
  const Recipe again = parse_recipe(text, "again.toml");
  EXPECT_EQ(recipe_model_config(again), recipe_model_config(r));
  EXPECT_EQ(again.optimizer, r.optimizer);
  EXPECT_EQ(again.schedule, r.schedule);
  EXPECT_EQ(again.data.corpus, r.data.corpus);
  EXPECT_EQ(again.objective.options, r.objective.options);
  EXPECT_EQ(again.train.keep_last, 3);
}

TEST(ParseBytes, KnowsUnits) {
  EXPECT_EQ(parse_bytes("4GB"), 4'000'000'000);
  EXPECT_EQ(parse_bytes("512 MiB"), 512 << 20);
  EXPECT_EQ(parse_bytes("1.5g"), 1'500'000'000);
  EXPECT_EQ(parse_bytes("4TB"), 4'000'000'000'000);
  EXPECT_EQ(parse_bytes("1TiB"), int64_t{1} << 40);
  EXPECT_EQ(parse_bytes("123456"), 123456);
  for (const char* bad : {"", "GB", "4TBB", "-1GB", "0", "nan", "1e400"}) {
    expect_error(ErrorCode::invalid_argument, "amount of memory", [&] { parse_bytes(bad); });
  }
}

}  // namespace
}  // namespace heed
