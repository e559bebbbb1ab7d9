// From a recipe to what the trainer runs on: tokenizer, corpora, the model's config and weights.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/stream.h"
#include "heed/tokenizer.h"
#include "heed/train.h"
#include "model/network.h"
#include "train/recipe/recipe.h"

namespace heed {

// Throws invalid_argument when it cannot be made.
void make_folder(const std::string& folder);

// The model's config, fitted to the objective and to the tokenizer, but for what the recipe itself
// says. `labels`: how many classes there are, 0 where none are known yet. Throws invalid_argument
// when the family cannot learn the objective.
ModelConfig fitted_config(const Recipe& recipe, const Tokenizer& tokenizer, int labels);

// A new network, with all weights of `from` (may be null) that it has under the same name and
// shape. `fresh` receives the names of the others.
Network network_from(const ModelConfig& config, const Network* from, uint64_t seed,
                     std::vector<std::string>& fresh);

// Puts into a model folder's config.json, where the ecosystem looks for it, what the weights do not
// tell: the objective (finetuning_task) and the names of classes (id2label, label2id), if any.
void write_task(const std::string& folder, Objective objective,
                const std::vector<std::string>& labels);

// Puts generation_config.json into a model folder, from where every tool that decodes takes how:
// the file of model.from, if there is one, with the ids of this model and [validate]'s beam and
// length penalty, so that what decodes the model later does as validation did. Does nothing for
// models without a decoder.
void write_generation_config(const std::string& folder, const Recipe& recipe,
                             const ModelConfig& config);

// The examples of the validation files as text, as many as validate.max_sentences says.
std::vector<ValidationExample> read_validation_examples(const CorpusOptions& corpus,
                                                        const Recipe& recipe);

struct Preparation {
  TokenizerPtr tokenizer;
  std::unique_ptr<BatchStream> training, validation;
  CorpusOptions validation_corpus;  // no files: there is no validation
  ModelConfig config;
  // Of the two, to make them anew with another budget.
  StreamOptions stream_options, validation_options;
};

// Which of a step's batches are ours.
struct RankPlace {
  int rank = 0, ranks = 1;
};

// Reads and, where OUT does not have it yet, learns and tokenises. `note` gets a line for each.
Preparation prepare(const Recipe& recipe, const std::string& out, int threads,
                    const std::function<void(std::string_view)>& note, RankPlace place = {});

}  // namespace heed
