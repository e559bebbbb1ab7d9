// A loaded model: its weights, its tokenizer and its default search options.
//
//   heed::Model model = heed::Model::load("models/en-de");
//   std::string text = heed::Translator(model).translate("Hello!").text;    // heed/translate.h
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
  bool tokenizer = true;  // false: raw ids only; the folder's tokenizer files are not read
};

// A model's files, already in memory.
struct ModelFiles {
  std::string config;              // the text of config.json
  std::vector<std::byte> tensors;  // model.safetensors or pytorch_model.bin
  std::string tokenizer{};         // the text of tokenizer.json; empty: none
  std::string generation{};        // the text of generation_config.json; empty: none
  std::string name = "memory";     // in messages
};

class Model {
 public:
  // A folder in Hugging Face's layout. A missing or invalid tokenizer is an error only when it is
  // used.
  static Model load(const std::string& folder, const ModelLoadOptions& options = {});
  static Model from_memory(ModelFiles files);
  // For the library's own use.
  Model(std::shared_ptr<const Network> network, TokenizerPtr tokenizer, SearchOptions search = {});

  std::string family() const;  // "encoder_decoder", "encoder_only" or "decoder_only"
  std::string head() const;    // "language_model", "masked_lm", "classifier", …
  bool can_generate() const;   // it has a decoder and a language model's head
  bool has_source() const;     // it is an encoder-decoder model

  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  const Tokenizer& tokenizer() const;  // throws not_found, or the error of loading it
  TokenizerPtr tokenizer_pointer() const { return tokenizer_; }

  // Defaults from generation_config.json and config.json: num_beams, max_length, bad_words_ids, …
  const SearchOptions& search_options() const { return search_; }
  // Whether those files have a key ("num_beams").
  bool has_setting(const std::string& name) const;

  int64_t vocabulary() const;
  // max_positions of the configuration: the positions of the model, or the length it was trained on.
  int64_t max_positions() const;
  // Maximum length of prompt and answer of a decoder-only model: max_positions, extended by the
  // RoPE scaling. 0: none, because positions are relative and each layer attends within a window,
  // or with ALiBi.
  int64_t context_length() const;
  // Whether longer sequences are impossible (learned and sinusoidal positions).
  bool positions_are_fixed() const;

  // Label names (id2label) of classifiers and taggers; "LABEL_0" without any.
  const std::vector<std::string>& labels() const { return labels_; }

  // finetuning_task of config.json: an objective of `heed train`, such as "translation" or
  // "parsing", or another tool's name; empty: none.
  const std::string& task() const { return task_; }

  // Whether a classifier or regression model was trained on pairs of texts: heed_text_pairs of
  // config.json, or a GLUE task of pairs as finetuning_task ("mrpc", "stsb"). One text alone gives a
  // meaningless result.
  bool takes_pairs() const { return takes_pairs_; }

  // For the library's own use.
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
  bool takes_pairs_ = false;
  std::string name_;  // in messages
  std::shared_ptr<const Error> tokenizer_error_;
};

}  // namespace heed
