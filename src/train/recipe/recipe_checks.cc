#include "train/recipe/recipe_checks.h"

#include <algorithm>
#include <optional>

#include "base/text/suggest.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "model/presets.h"
#include "train/recipe/recipe_fields.h"

namespace heed {

std::string suggestion(const std::string& given, const std::vector<std::string>& names) {
  const std::optional<std::string> near = nearest(given, names);
  return near ? " (did you mean " + *near + "?)" : "";
}

std::string place_of(const Recipe& recipe, const std::string& key) {
  const std::string origin = recipe.origin(key);
  if (origin == "default") return recipe.path + ": ";
  // Origins have the name of the file; a message has its path.
  const size_t line = origin.rfind(':');
  return (line == std::string::npos ? origin : recipe.path + origin.substr(line)) + ": ";
}

void throw_problems(const std::string& where, const std::vector<RecipeProblem>& problems) {
  if (problems.size() == 1) {
    throw Error(ErrorCode::invalid_argument, problems[0].text, problems[0].hint);
  }
  std::string message = where + ": " + std::to_string(problems.size()) + " problems";
  for (const RecipeProblem& p : problems) {
    message += "\n  - " + p.text + (p.hint.empty() ? "" : " (" + p.hint + ")");
  }
  throw Error(ErrorCode::invalid_argument, message,
              "correct each of them; `heed train RECIPE --print-config` shows all values");
}

std::vector<std::string> text_values(const Recipe& recipe, const std::string& key) {
  if (key == "tokenizer.type") {
    return {"bpe", "unigram", "byte-bpe", "roberta", "wordpiece", "char", "byte"};
  }
  if (key == "validate.tokenize") return {"13a", "intl", "zh", "char", "none"};
  if (key == "validate.metric") return metrics_of(recipe.objective.options.kind);
  return {};
}

namespace {

// The meaning of a key.
std::string help_of(const std::string& name) {
  std::string text;
  const Recipe recipe{};
  describe_recipe(recipe, [&](const char* section, const char* key, const auto&, const char* help) {
    if (name == std::string(section) + "." + key) text = help;
  });
  return text;
}

class Checks {
 public:
  Checks(const Recipe& recipe, std::vector<RecipeProblem>& problems)
      : recipe_(recipe), problems_(problems) {}

  // `key` tells the place and, without a hint, the meaning.
  void unless(bool fine, const std::string& key, const std::string& problem,
              const std::string& hint = {}) {
    if (fine) return;
    problems_.push_back(
        {place_of(recipe_, key) + problem, hint.empty() ? key + ": " + help_of(key) : hint});
  }
  template <class T>
  void at_least(const char* key, T value, T least) {
    unless(value >= least, key,
           std::string(key) + " must be at least " + Json(least).dump() + ", got " +
               Json(value).dump());
  }
  template <class T>
  void positive(const char* key, T value) {
    unless(value > 0, key, std::string(key) + " must be positive, got " + Json(value).dump());
  }
  void share(const char* key, double value) {
    unless(value >= 0 && value <= 1, key,
           std::string(key) + " must be between 0 and 1, got " + Json(value).dump());
  }
  // A value and its origin: "train.steps = 3 (--set)".
  std::string given(const std::string& key, const std::string& value) const {
    return key + " = " + value + " (" + recipe_.origin(key) + ")";
  }

 private:
  const Recipe& recipe_;
  std::vector<RecipeProblem>& problems_;
};

std::string quoted(const std::string& text) { return Json(text).dump(); }

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

void check_values(const Recipe& r, Checks& c, const std::string& key, const std::string& value) {
  const std::vector<std::string> values = text_values(r, key);
  const std::string kind(name_of(r.objective.options.kind));
  c.unless(std::ranges::find(values, value) != values.end(), key,
           key + " must be " + list_of(values) + (key == "validate.metric" ? " for " + kind : "") +
               ", got '" + value + "'" + suggestion(value, values));
}

void check_validation(const Recipe& r, Checks& c) {
  check_values(r, c, "validate.metric", r.validate.metric);
  check_values(r, c, "validate.tokenize", r.validate.tokenize);
  c.at_least("validate.beam", r.validate.beam, 1);
  c.at_least("validate.samples", r.validate.samples, 0);
  c.at_least<int64_t>("validate.max_sentences", r.validate.max_sentences, 0);
  c.unless(r.validate.files.empty() || r.validate.share == 0, "validate.share",
           "[validate] must have either files or share, got both",
           "--set validate.share=0 validates on the files, --set 'validate.files=[]' on the share");
  c.unless(r.validate.share == 0 || r.data.corpora.size() < 2, "validate.share",
           "validate.share must be 0 with several corpora, got " + Json(r.validate.share).dump(),
           "--set validate.share=0, and set validate.files");
  const bool validates = !r.validate.files.empty() || r.validate.share > 0;
  const char* const without = "add validate.files, or validate.share = 0.1";
  c.unless(validates || r.validate.patience == 0, "validate.patience",
           "validate.patience must be 0 without validate.files", without);
  c.unless(validates || r.train.average != Averaging::best, "train.average",
           "train.average must not be \"best\" without validate.files", without);
}

// What is known without reading the model's folder.
void check_model(const Recipe& r, Checks& c) {
  const bool has_preset = !r.model.preset.empty(), has_from = !r.model.from.empty();
  c.unless(has_preset || has_from, "model.preset", "[model] must have preset or from, got neither",
           "preset = \"bert-tiny\" trains from scratch (`heed presets` lists them), from = \"DIR\" "
           "fine-tunes a model folder");
  c.unless(!has_preset || !has_from, "model.from",
           "[model] must have either preset or from, got both: " +
               c.given("model.preset", quoted(r.model.preset)) + " and " +
               c.given("model.from", quoted(r.model.from)),
           "--set model.preset= fine-tunes the model in model.from, --set model.from= trains the "
           "preset from scratch");
  if (has_preset && !has_from) {
    std::vector<std::string> names;
    for (const Preset& preset : presets()) names.push_back(preset.name);
    c.unless(std::ranges::find(names, r.model.preset) != names.end(), "model.preset",
             "model.preset must be the name of a preset, got " + quoted(r.model.preset) +
                 suggestion(r.model.preset, names),
             "`heed presets` lists them");
  }
  if (!r.tokenizer.type.empty()) check_values(r, c, "tokenizer.type", r.tokenizer.type);
  // The rows of the embeddings are those of the vocabulary of model.from.
  const bool trains_tokenizer = r.tokenizer.from.empty() && !r.tokenizer.type.empty();
  c.unless(!has_from || !trains_tokenizer || r.tokenizer.type == "byte", "tokenizer.type",
           "[tokenizer] must not train a new tokenizer with model.from, whose embeddings belong to "
           "its own vocabulary, got " +
               c.given("tokenizer.type", quoted(r.tokenizer.type)),
           "--set tokenizer.type= uses the tokenizer of model.from");
}

// The model's config if the recipe alone defines it: not with model.from. Errors in it are reported
// where the model is made.
std::optional<ModelConfig> preset_config(const Recipe& r) {
  if (!r.model.from.empty()) return std::nullopt;
  try {
    return recipe_model_config(r);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool predicts_tokens(Objective objective) {
  return objective != Objective::classification && objective != Objective::regression &&
         objective != Objective::tagging;
}

// Also checked by the data and the step, but only after the corpus was prepared.
void check_objective(const Recipe& r, Checks& c) {
  const ObjectiveOptions& o = r.objective.options;
  const std::string kind(name_of(o.kind));
  c.share("objective.mask_rate", o.mask_rate);
  c.share("objective.mask_share", o.mask_share);
  c.share("objective.random_share", o.random_share);
  c.share("objective.next_sentence_random", o.next_sentence_random);
  c.share("objective.short_sequences", o.short_sequences);
  c.share("objective.permute_sentences", o.permute_sentences);
  c.at_least<int64_t>("objective.block_tokens", o.block_tokens, 1);
  c.at_least<int64_t>("objective.mask_copies", o.mask_copies, 0);
  c.unless(o.mean_span >= 1 && o.mean_span < 100, "objective.mean_span",
           "objective.mean_span must be at least 1 and below 100, got " + Json(o.mean_span).dump());
  c.share("objective.subword_dropout", o.subword_dropout);
  const auto writes_xx = [](const CorpusOptions& corpus) {
    return corpus.tree_words == LinearWords::xx;
  };
  c.unless(o.kind == Objective::parsing ||
               (writes_xx(r.data.corpus) && std::ranges::all_of(r.data.corpora, writes_xx)),
           "data.tree_words",
           "data.tree_words must be unset unless objective.kind is parsing, got " + kind,
           "remove it, or set objective.kind = \"parsing\"");
  c.unless(o.subword_dropout == 0 || o.kind == Objective::translation, "objective.subword_dropout",
           "objective.subword_dropout must be 0 unless objective.kind is translation, got " + kind,
           "--set objective.subword_dropout=0");
  c.at_least("objective.r_drop", r.objective.loss.r_drop, 0.0f);
  if (r.objective.loss.r_drop <= 0) return;
  const std::string disable = "--set objective.r_drop=0";
  c.unless(predicts_tokens(o.kind), "objective.r_drop",
           "objective.r_drop must be 0 for " + kind +
               ": R-Drop compares two output distributions over the vocabulary",
           disable);
  c.unless(r.objective.teacher.empty(), "objective.r_drop",
           "objective.r_drop must be 0 with objective.teacher",
           disable + ", or --set objective.teacher=");
  const std::optional<ModelConfig> model = preset_config(r);
  if (!model) return;
  c.unless(has_dropout(*model), "objective.r_drop",
           "objective.r_drop must be 0 for a model without dropout: both passes would be equal",
           disable + ", or set model.dropout");
  c.unless(model->logits_soft_cap == 0, "objective.r_drop",
           "objective.r_drop must be 0 for a model with model.logits_soft_cap", disable);
}

// So that their steps can be counted.
constexpr double kMostEpochs = 1e9;

}  // namespace

void check_recipe(const Recipe& r, std::vector<RecipeProblem>& problems) {
  Checks c(r, problems);
  check_model(r, c);
  const bool has_train = !r.data.corpus.files.empty(), has_corpora = !r.data.corpora.empty();
  c.unless(has_train || has_corpora, "data.train", "[data] must have train, got no files",
           "train = [\"FILE\"], or source and target: train = [\"FILE\", \"FILE\"]");
  c.unless(!has_train || !has_corpora, "data.train",
           "[data] must have either train or [[data.corpora]], got both",
           "--set 'data.train=[]' trains on the corpora, --set 'data.corpora=[]' on the files");
  for (const CorpusOptions& corpus : r.data.corpora) {
    c.unless(!corpus.files.empty(), "data.corpora", "each [[data.corpora]] must have files",
             "files = [\"FILE\"]");
  }
  const bool has_steps = r.train.steps != 0, has_epochs = r.train.epochs != 0;
  c.unless(has_steps || has_epochs, "train.steps", "[train] must have steps or epochs, got neither",
           "--set train.steps=1000, or --set train.epochs=3");
  c.unless(!has_steps || !has_epochs, "train.steps",
           "[train] must have either steps or epochs, got both: " +
               c.given("train.steps", std::to_string(r.train.steps)) + " and " +
               c.given("train.epochs", Json(r.train.epochs).dump()),
           "--set train.epochs=0 trains for the steps, --set train.steps=0 for the epochs");
  c.at_least<int64_t>("train.steps", r.train.steps, 0);
  c.at_least("train.epochs", r.train.epochs, 0.0);
  c.unless(r.train.epochs <= kMostEpochs, "train.epochs",
           "train.epochs must be at most " + Json(kMostEpochs).dump() + ", got " +
               Json(r.train.epochs).dump());
  c.at_least("train.accumulate", r.train.accumulate, 1);
  c.unless(r.train.accumulate <= kMostBatches, "train.accumulate",
           "train.accumulate must be at most " + std::to_string(kMostBatches) + ", got " +
               std::to_string(r.train.accumulate),
           "make data.batch_tokens larger instead");
  c.at_least<int64_t>("train.log_every", r.train.log_every, 1);
  c.at_least<int64_t>("train.checkpoint_every", r.train.checkpoint_every, 1);
  c.at_least("train.keep_last", r.train.keep_last, 1);
  c.at_least("train.keep_best", r.train.keep_best, 0);
  c.at_least("train.average_count", r.train.average_count, 1);
  c.at_least<int64_t>("data.batch_tokens", r.data.batch_tokens, 1);
  c.at_least<int64_t>("data.batch_sentences", r.data.batch_sentences, 0);
  c.at_least<int64_t>("data.max_tokens", r.data.filters.max_tokens, 1);
  c.positive("data.temperature", r.data.temperature);
  c.at_least<int64_t>("tokenizer.vocabulary", r.tokenizer.vocabulary, 1);
  c.at_least<int64_t>("tokenizer.sentinels", r.tokenizer.sentinels, 0);
  c.at_least<int64_t>("schedule.warmup_steps", r.schedule.warmup_steps, 0);
  c.at_least<int64_t>("schedule.steps", r.schedule.steps, 0);
  c.at_least("schedule.warmup_learning_rate", r.schedule.warmup_learning_rate, 0.0);
  c.at_least("schedule.final_learning_rate", r.schedule.final_learning_rate, 0.0);
  c.at_least("objective.soft_weight", r.objective.loss.soft_weight, 0.0f);
  c.at_least("objective.label_weight", r.objective.loss.label_weight, 0.0f);
  c.at_least("objective.cosine_weight", r.objective.loss.cosine_weight, 0.0f);
  c.at_least<int64_t>("validate.every", r.validate.every, 1);
  c.at_least<int64_t>("validate.batches", r.validate.batches, 0);
  c.at_least("validate.patience", r.validate.patience, 0);
  c.at_least("optimizer.weight_decay", r.optimizer.weight_decay, 0.0f);
  c.at_least("optimizer.clip_norm", r.optimizer.clip_norm, 0.0f);
  c.positive("optimizer.learning_rate", r.optimizer.learning_rate);
  c.positive("optimizer.eps", r.optimizer.eps);
  for (const auto& [key, value] :
       {std::pair{"optimizer.beta1", double{r.optimizer.beta1}},
        {"optimizer.beta2", double{r.optimizer.beta2}},
        {"optimizer.ema_decay", r.optimizer.ema_decay},
        {"objective.label_smoothing", double{r.objective.loss.label_smoothing}},
        {"validate.share", r.validate.share}}) {
    c.unless(value >= 0 && value < 1, key,
             std::string(key) + " must be at least 0 and below 1, got " + Json(value).dump());
  }
  check_objective(r, c);
  c.positive("objective.temperature", r.objective.loss.temperature);
  check_validation(r, c);
}

std::vector<std::string> metrics_of(Objective objective) {
  switch (objective) {
    case Objective::translation:
      return {"loss", "perplexity", "accuracy", "bleu", "chrf", "exact"};
    case Objective::classification:
      return {"loss", "accuracy", "f1", "matthews"};
    case Objective::regression:
      return {"loss", "pearson", "spearman"};
    case Objective::tagging:
      return {"loss", "accuracy", "f1"};
    case Objective::parsing:
      return {"loss", "perplexity", "accuracy", "f1"};
    default:
      return {"loss", "perplexity", "accuracy"};
  }
}

}  // namespace heed
