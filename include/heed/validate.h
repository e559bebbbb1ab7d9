// What real decoding says about a model in training, which itself knows only losses.
//
//   heed::TrainOptions options{.recipe = "recipes/multi30k-en-de.toml"};
//   options.validator = heed::decoding_validator();      // BLEU and chrF, beside the loss
//   heed::train(options);
//
// Training asks a validator now and then, hands it a model folder and examples, and takes what it
// says as it is: any function will do, so training does not depend on what decodes. This one
// answers as the commands `heed translate`, `classify`, `tag` and `parse` would, and its scores are
// those of `heed eval`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heed {

// One example of the validation files, as text.
struct ValidationExample {
  std::string source{};                 // the text; of tagging, empty
  std::optional<std::string> second{};  // of a pair that has a label
  std::string target{};                 // translation, linear tree, label or number
  std::vector<std::string> words{};     // of tagging and parsing
  std::vector<std::string> tags{};      // of tagging, one a word
};

struct ValidationRequest {
  std::string model{};      // a folder; its generation_config.json says how to search
  std::string objective{};  // as in recipes: "translation"
  std::span<const ValidationExample> examples{};
  std::string source_prefix{}, target_prefix{};  // as in recipes
  std::string tokenize = "13a";                  // of BLEU
  int64_t max_tokens = 0;                        // longer texts to label are cut; 0: the model's
  int samples = 3;
  int threads = 0;
  uint64_t kv_memory_bytes = uint64_t{1} << 30;
  // Becomes true: throw cancelled, and soon. One that does not look at it is waited for.
  const std::atomic<bool>* stop = nullptr;
};

struct ValidationScores {
  // By objective: translation bleu, chrf, exact (the share of answers that are as wanted);
  // classification accuracy, f1 (mean of the classes), matthews; regression pearson, spearman;
  // tagging accuracy and, where tags mark spans, f1; parsing f1. BLEU, chrF and the f1 of spans and
  // brackets are percentages.
  std::map<std::string, double> metrics{};
  std::vector<std::string> samples{};  // what to show a reader
};

using Validator = std::function<ValidationScores(const ValidationRequest&)>;

// Throws what loading and decoding throw. Other objectives have no metrics; causal_lm has samples.
Validator decoding_validator();

}  // namespace heed
