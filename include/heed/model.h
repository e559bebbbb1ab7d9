// A loaded model: its weights, its tokenizer, and how it wants to be used.
//
//   heed::Model model = heed::Model::load("models/en-de");
//   std::string text = heed::Translator(model).translate("Hello!").text;    // heed/engine.h
//
// Immutable, safe to use from many threads, and cheap to copy: copies share the weights. Any number
// of models can be loaded at once. Throws heed::Error: not_found, corrupt_file or unsupported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/error.h"
#include "heed/search.h"
#include "heed/tokenizer.h"

namespace heed {

class Network;
class TensorFile;

struct ModelLoadOptions {
  bool tokenizer = true;  // false: raw ids only; the folder's tokenizer files are not looked at
};

// A model's files, already in memory.
struct ModelFiles {
  std::string config;              // the text of config.json
  std::vector<std::byte> tensors;  // model.safetensors or pytorch_model.bin
  std::string tokenizer{};         // the text of tokenizer.json; empty: there is none
  std::string generation{};        // the text of generation_config.json, likewise
  std::string name = "memory";     // in messages
};

class Model {
 public:
  // A folder in Hugging Face's layout. A tokenizer that is not there, or cannot be read, is no
  // error until it is asked for.
  static Model load(const std::string& folder, const ModelLoadOptions& options = {});
  static Model from_memory(ModelFiles files);
  // What the library itself has made.
  Model(std::shared_ptr<const Network> network, TokenizerPtr tokenizer, SearchOptions search = {});

  std::string family() const;  // "encoder_decoder", "encoder_only" or "decoder_only"
  std::string head() const;    // "language_model", "masked_lm", "classifier", …
  bool can_generate() const;   // it has a decoder and a language model's head
  bool has_source() const;     // it is an encoder-decoder model

  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  const Tokenizer& tokenizer() const;  // throws when there is none, or what was wrong with it
  TokenizerPtr tokenizer_pointer() const { return tokenizer_; }

  // What generation_config.json and config.json ask for: num_beams, max_length, bad_words_ids, …
  const SearchOptions& search_options() const { return search_; }
  // Whether those files say anything about a field, by its name there ("num_beams").
  bool has_setting(const std::string& name) const;

  int64_t vocabulary() const;
  // The longest sequence that the model has positions for, or was trained on.
  int64_t max_positions() const;
  // Whether it is impossible to go beyond that.
  bool positions_are_fixed() const;

  // The labels' names (id2label) of classifiers and taggers; "LABEL_0" where there are none.
  const std::vector<std::string>& labels() const { return labels_; }

  // What it was trained for, where config.json tells (finetuning_task): an objective of `heed
  // train`, such as "translation" or "parsing", or another tool's word. Empty: nobody knows.
  const std::string& task() const { return task_; }

  // What the library works with.
  const Network& network() const { return *network_; }
  std::shared_ptr<const Network> network_pointer() const { return network_; }

 private:
  Model() = default;
  // All but the tokenizer; config.json and generation_config.json as texts.
  static Model from_parts(const std::string& name, const std::string& config,
                          const TensorFile& tensors, const std::optional<std::string>& generation);

  std::shared_ptr<const Network> network_;
  TokenizerPtr tokenizer_;
  SearchOptions search_;
  std::vector<std::string> settings_;  // sorted names
  std::vector<std::string> labels_;
  std::string task_;
  std::string name_;  // in messages
  std::shared_ptr<const Error> tokenizer_error_;
};

}  // namespace heed
