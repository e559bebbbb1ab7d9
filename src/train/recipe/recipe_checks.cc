#include "train/recipe/recipe_checks.h"

#include <algorithm>
#include <optional>

#include "base/text/suggest.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"

namespace heed {

std::string suggestion(const std::string& given, const std::vector<std::string>& names) {
  const std::optional<std::string> near = nearest(given, names);
  return near ? " (did you mean " + *near + "?)" : "";
}

namespace {

class Checks {
 public:
  explicit Checks(std::vector<std::string>& problems) : problems_(problems) {}
  void unless(bool fine, const std::string& problem) {
    if (!fine) problems_.push_back(problem);
  }
  template <class T>
  void at_least(const char* key, T value, T least) {
    unless(value >= least, std::string(key) + " must be at least " + Json(least).dump() + ", got " +
                               Json(value).dump());
  }
  void share(const char* key, double value) {
    unless(value >= 0 && value <= 1,
           std::string(key) + " must be between 0 and 1, got " + Json(value).dump());
  }

 private:
  std::vector<std::string>& problems_;
};

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

void check_validation(const Recipe& r, Checks& c) {
  const std::vector<std::string> metrics = metrics_of(r.objective.options.kind);
  c.unless(std::ranges::find(metrics, r.validate.metric) != metrics.end(),
           "validate.metric must be " + list_of(metrics) + " for " +
               std::string(name_of(r.objective.options.kind)) + ", got '" + r.validate.metric +
               "'" + suggestion(r.validate.metric, metrics));
  static const std::vector<std::string> kTokenizers{"13a", "intl", "zh", "char", "none"};
  c.unless(std::ranges::find(kTokenizers, r.validate.tokenize) != kTokenizers.end(),
           "validate.tokenize must be " + list_of(kTokenizers) + ", got '" + r.validate.tokenize +
               "'" + suggestion(r.validate.tokenize, kTokenizers));
  c.at_least("validate.beam", r.validate.beam, 1);
  c.at_least("validate.samples", r.validate.samples, 0);
  c.at_least<int64_t>("validate.max_sentences", r.validate.max_sentences, 0);
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
  c.share("objective.subword_dropout", o.subword_dropout);
  const auto writes_xx = [](const CorpusOptions& corpus) {
    return corpus.tree_words == LinearWords::xx;
  };
  c.unless(o.kind == Objective::parsing ||
               (writes_xx(r.data.corpus) && std::ranges::all_of(r.data.corpora, writes_xx)),
           "data.tree_words must be unset unless objective.kind is parsing, got " + kind);
  c.unless(o.subword_dropout == 0 || o.kind == Objective::translation,
           "objective.subword_dropout must be 0 unless objective.kind is translation, got " + kind);
  c.at_least("objective.r_drop", r.objective.loss.r_drop, 0.0f);
  if (r.objective.loss.r_drop <= 0) return;
  c.unless(predicts_tokens(o.kind),
           "objective.r_drop must be 0 for " + kind +
               ": R-Drop compares two output distributions over the vocabulary");
  c.unless(r.objective.teacher.empty(),
           "objective.r_drop must be 0 with objective.teacher: choose one of the two");
  const std::optional<ModelConfig> model = preset_config(r);
  if (!model) return;
  c.unless(has_dropout(*model),
           "objective.r_drop must be 0 for a model without dropout: both passes would be equal");
  c.unless(model->logits_soft_cap == 0,
           "objective.r_drop must be 0 for a model with model.logits_soft_cap");
}

// So that their steps can be counted.
constexpr double kMostEpochs = 1e9;

}  // namespace

void check_recipe(const Recipe& r, std::vector<std::string>& problems) {
  Checks c(problems);
  c.unless(r.model.preset.empty() != r.model.from.empty(),
           "[model] must have either preset or from");
  c.unless(r.data.corpus.files.empty() != r.data.corpora.empty(),
           "[data] must have either train or [[data.corpora]]");
  for (const CorpusOptions& corpus : r.data.corpora) {
    c.unless(!corpus.files.empty(), "each [[data.corpora]] must have files");
  }
  c.unless(r.train.steps > 0 || r.train.epochs > 0, "[train] must have steps or epochs");
  c.unless(r.train.steps == 0 || r.train.epochs == 0,
           "[train] must not have both steps and epochs");
  c.at_least<int64_t>("train.steps", r.train.steps, 0);
  c.at_least("train.epochs", r.train.epochs, 0.0);
  c.unless(r.train.epochs <= kMostEpochs, "train.epochs must be at most " +
                                              Json(kMostEpochs).dump() + ", got " +
                                              Json(r.train.epochs).dump());
  c.at_least("train.accumulate", r.train.accumulate, 1);
  c.unless(r.train.accumulate <= kMostBatches,
           "train.accumulate must be at most " + std::to_string(kMostBatches) + ", got " +
               std::to_string(r.train.accumulate) + ": make data.batch_tokens larger instead");
  c.at_least<int64_t>("train.log_every", r.train.log_every, 1);
  c.at_least<int64_t>("train.checkpoint_every", r.train.checkpoint_every, 1);
  c.at_least("train.keep_last", r.train.keep_last, 1);
  c.at_least("train.keep_best", r.train.keep_best, 0);
  c.at_least("train.average_count", r.train.average_count, 1);
  c.at_least<int64_t>("data.batch_tokens", r.data.batch_tokens, 1);
  c.at_least<int64_t>("data.batch_sentences", r.data.batch_sentences, 0);
  c.at_least<int64_t>("data.max_tokens", r.data.filters.max_tokens, 1);
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
  c.unless(r.optimizer.learning_rate > 0, "optimizer.learning_rate must be positive");
  c.unless(r.optimizer.eps > 0, "optimizer.eps must be positive");
  for (const auto& [key, value] :
       {std::pair{"optimizer.beta1", double{r.optimizer.beta1}},
        {"optimizer.beta2", double{r.optimizer.beta2}},
        {"optimizer.ema_decay", r.optimizer.ema_decay},
        {"objective.label_smoothing", double{r.objective.loss.label_smoothing}},
        {"validate.share", r.validate.share}}) {
    c.unless(value >= 0 && value < 1,
             std::string(key) + " must be at least 0 and below 1, got " + Json(value).dump());
  }
  check_objective(r, c);
  c.unless(r.objective.loss.temperature > 0, "objective.temperature must be positive");
  c.unless(r.validate.files.empty() || r.validate.share == 0,
           "[validate] must not have both files and share");
  const bool validates = !r.validate.files.empty() || r.validate.share > 0;
  c.unless(validates || r.validate.patience == 0,
           "validate.patience must be 0 without validate.files");
  c.unless(validates || r.train.average != Averaging::best,
           "train.average must not be \"best\" without validate.files");
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
