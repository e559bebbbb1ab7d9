// Makes what the trainer needs from a recipe: tokenizer, corpora, the model's config and weights.
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

// Throws invalid_argument if it cannot be made.
void make_folder(const std::string& folder);

// Throws invalid_argument unless the tokenizer of `folder`, if it has one, has the same pieces.
// `other_name` ("the teacher") and `name` ("the student") are for the message.
void check_same_pieces(const Tokenizer& tokenizer, const std::string& folder,
                       const std::string& other_name, const std::string& name);

// The model's config, fitted to the objective and to the tokenizer, except for keys that the recipe
// sets. `labels`: number of classes, 0 if not known yet. Throws invalid_argument if the family does
// not support the objective.
ModelConfig fitted_config(const Recipe& recipe, const Tokenizer& tokenizer, int labels);

// A new network, with the weights of `from` (may be null) that have the same name and shape. `fresh`
// receives the names of the others, which are newly initialized.
Network network_from(const ModelConfig& config, const Network* from, uint64_t seed,
                     std::vector<std::string>& fresh);

// Writes the objective (finetuning_task) and the class names (id2label, label2id) into config.json,
// where Hugging Face tools read them, and heed_text_pairs if the examples are pairs of texts.
void write_task(const std::string& folder, Objective objective,
                const std::vector<std::string>& labels, bool text_pairs = false);
// Whether the texts that get a label are pairs.
bool has_text_pairs(const Recipe& recipe);

// Writes generation_config.json: the file of model.from, if there is one, with the ids of this model
// and the beam and length penalty of [validate], so that later decoding uses the settings of
// validation. Does nothing for models without a decoder.
void write_generation_config(const std::string& folder, const Recipe& recipe,
                             const ModelConfig& config);

// The examples of the validation files as text, at most validate.max_sentences.
std::vector<ValidationExample> read_validation_examples(const CorpusOptions& corpus,
                                                        const Recipe& recipe);

struct Preparation {
  TokenizerPtr tokenizer;
  std::unique_ptr<BatchStream> training, validation;
  CorpusOptions validation_corpus;  // without files there is no validation
  ModelConfig config;
  // To make the two streams again with another batch size.
  StreamOptions stream_options, validation_options;
};

// This process among the ranks.
struct RankPlace {
  int rank = 0, ranks = 1;
};

// Reads the data; trains the tokenizer and tokenizes if OUT does not have the files yet. `note` gets
// a line for each part.
Preparation prepare(const Recipe& recipe, const std::string& out, int threads,
                    const std::function<void(std::string_view)>& note, RankPlace place = {});

}  // namespace heed
