#include "train/recipe/preparation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "data/records/record_reader.h"
#include "data/records/record_split.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/recipe/tokenizer_text.h"
#include "train/run/checkpoint.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

void write_whole(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string text_of_file(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

std::vector<std::string> in_folder(const std::string& folder, std::vector<std::string> files) {
  if (folder.empty()) return files;
  for (std::string& file : files) {
    if (fs::path(file).is_relative()) file = folder + "/" + file;
  }
  return files;
}

std::vector<CorpusOptions> corpora_of(const Recipe& recipe) {
  std::vector<CorpusOptions> corpora = recipe.data.corpora;
  if (corpora.empty()) corpora = {recipe.data.corpus};
  for (CorpusOptions& corpus : corpora) corpus.files = in_folder(recipe.data.folder, corpus.files);
  return corpora;
}

TokenizerPtr trained_tokenizer(const Recipe& recipe, const std::vector<CorpusOptions>& corpora,
                               const std::string& out, int threads) {
  TokenizerTraining training;
  training.type = recipe.tokenizer.type.empty() ? "bpe" : recipe.tokenizer.type;
  training.vocabulary = recipe.tokenizer.vocabulary;
  training.files = in_folder(recipe.data.folder, recipe.tokenizer.files);
  training.lowercase = recipe.tokenizer.lowercase;
  training.special_tokens = recipe.tokenizer.special_tokens;
  for (int64_t i = 0; i < recipe.tokenizer.sentinels; ++i) {
    training.special_tokens.push_back("<extra_id_" + std::to_string(i) + ">");
  }
  training.user_symbols = recipe.tokenizer.user_symbols;
  training.byte_fallback = recipe.tokenizer.byte_fallback;
  training.split_digits = recipe.tokenizer.split_digits;
  training.threads = threads;
  const std::string text = out + "/tokenizer.txt";
  if (training.files.empty()) {
    training.files = tokenizer_text(corpora, recipe.objective.options.kind, text);
  }
  TokenizerPtr tokenizer = train_tokenizer(training);
  std::error_code not_written;
  fs::remove(text, not_written);
  return tokenizer;
}

// Trained once: OUT/tokenizer is complete or absent.
TokenizerPtr tokenizer_for(const Recipe& recipe, const std::vector<CorpusOptions>& corpora,
                           const std::string& out, int threads,
                           const std::function<void(std::string_view)>& note) {
  if (!recipe.tokenizer.from.empty()) return load_tokenizer(recipe.tokenizer.from);
  if (!recipe.model.from.empty() && recipe.tokenizer.type.empty()) {
    return load_tokenizer(recipe.model.from);
  }
  if (recipe.tokenizer.type == "byte") return make_tokenizer("byte");
  const std::string folder = out + "/tokenizer", partial = folder + ".partial";
  if (fs::exists(folder)) return load_tokenizer(folder);
  TokenizerPtr tokenizer = trained_tokenizer(recipe, corpora, out, threads);
  std::error_code failed;
  fs::remove_all(partial, failed);
  make_folder(partial);
  tokenizer->save(partial);
  sync_folder(partial);
  fs::rename(partial, folder, failed);
  if (failed) {
    throw Error(ErrorCode::invalid_argument, folder + ": " + failed.message(),
                "--out takes a folder that can be written");
  }
  note("tokenizer: trained " + std::to_string(tokenizer->vocabulary_size()) + " pieces");
  return tokenizer;
}

Family family_for(Objective objective) {
  switch (objective) {
    case Objective::causal_lm:
      return Family::decoder_only;
    case Objective::masked_lm:
      return Family::encoder_only;
    default:
      return Family::encoder_decoder;
  }
}

bool answers_sequences(Objective objective) {
  return objective == Objective::classification || objective == Objective::regression ||
         objective == Objective::tagging;
}

Head head_for(Objective objective) {
  switch (objective) {
    case Objective::masked_lm:
      return Head::masked_lm;
    case Objective::classification:
      return Head::classifier;
    case Objective::regression:
      return Head::regression;
    case Objective::tagging:
      return Head::token_classifier;
    default:
      return Head::language_model;
  }
}

// Architectures differ in the layers before the classifier's output: use those of this one, so that
// Hugging Face tools can load the model.
void choose_classifier(const Recipe& recipe, const ModelConfig& base, ModelConfig& config) {
  if (overrides_model(recipe, "pooler") || overrides_model(recipe, "head_activation")) return;
  if (config.head == Head::token_classifier) {
    config.pooler = false;
    config.head_activation = Activation::none;
    return;
  }
  if (config.family == Family::decoder_only) config.pooling = Pooling::last;
  const std::string type = hf_equivalent(base).model_type;
  ModelConfig first = config;
  bool has_first = false;
  for (const bool pooler : {true, false}) {
    for (const Activation activation : {Activation::none, Activation::tanh, Activation::relu}) {
      if (pooler && config.family != Family::encoder_only) continue;
      ModelConfig candidate = config;
      candidate.pooler = pooler, candidate.head_activation = activation;
      if (!validate(candidate).empty()) continue;
      if (!has_first) first = candidate, has_first = true;
      // In Hugging Face, regression is a classifier with one label.
      if (hf_equivalent(candidate).model_type == type) {
        config = candidate;
        return;
      }
    }
  }
  config = first;
}

void check_family(const ModelConfig& config, Objective objective) {
  if (answers_sequences(objective)) {
    if (config.family != Family::encoder_decoder) return;
    throw Error(ErrorCode::invalid_argument,
                "objective " + std::string(name_of(objective)) +
                    " is for encoder_only and decoder_only models, this one is encoder_decoder",
                "choose another preset, such as bert-tiny");
  }
  if (config.family == family_for(objective)) return;
  throw Error(ErrorCode::invalid_argument,
              "objective " + std::string(name_of(objective)) + " is for " +
                  std::string(name_of(family_for(objective))) + " models, this one is " +
                  std::string(name_of(config.family)),
              "change objective.kind or model.preset");
}

// How a labelled corpus was read, for error texts.
std::string reading_hint(const CorpusOptions& corpus) {
  const CorpusFormat format = format_of(corpus, Objective::classification);
  const std::string read = "read as " + std::string(name_of(format));
  if (format == CorpusFormat::labelled) {
    return read + ", where the first word of a line is its label: set data.format if it is another";
  }
  const bool named = format == CorpusFormat::jsonl;
  const auto column = [](const std::string& chosen, const char* otherwise) {
    return "\"" + (chosen.empty() ? std::string(otherwise) : chosen) + "\"";
  };
  return read + ", texts from column " + column(corpus.first_column, named ? "text" : "1") +
         ", labels from column " +
         column(corpus.label_column, named                          ? "label"
                                     : corpus.second_column.empty() ? "2"
                                                                    : "3") +
         ": set data.label_column if it is another";
}

// A single class usually means that the file was read with the wrong format or columns.
void check_classes(const std::vector<std::string>& labels, const CorpusOptions& corpus) {
  if (labels.size() != 1) return;
  throw Error(ErrorCode::invalid_argument,
              corpus.files.front() + ": every text has the label '" + labels.front() + "'",
              reading_hint(corpus));
}

}  // namespace

void make_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorCode::invalid_argument, folder + ": " + failed.message(),
                "--out takes a folder that can be written");
  }
}

ModelConfig fitted_config(const Recipe& recipe, const Tokenizer& tokenizer, int labels) {
  const ModelConfig base = recipe_model_config(recipe);
  ModelConfig config = base;
  const Objective objective = recipe.objective.options.kind;
  const auto given = [&](const char* field) { return overrides_model(recipe, field); };
  check_family(config, objective);
  if (!given("head")) config.head = head_for(objective);
  if (!given("labels")) {
    config.labels = objective == Objective::regression ? 1
                    : answers_sequences(objective)     ? std::max(labels, 1)
                                                       : 0;
  }
  if (answers_sequences(objective)) choose_classifier(recipe, base, config);
  if (objective == Objective::masked_lm && !given("pooler")) {
    config.pooler = recipe.objective.options.masked_input == MaskedInput::sentence_pairs;
  }
  const int64_t pieces = tokenizer.vocabulary_size();
  if (recipe.model.from.empty()) {
    const SpecialIds& ids = tokenizer.special_ids();
    if (!given("vocabulary")) config.vocabulary = pieces;
    if (!given("target_vocabulary")) config.target_vocabulary = 0;
    if (!given("pad_id")) config.pad_id = ids.pad;
    // RoBERTa's positions start after the padding id.
    const bool behind_padding = base.position_offset > 0 && base.position_offset == base.pad_id + 1;
    if (behind_padding && !given("position_offset")) config.position_offset = config.pad_id + 1;
    if (!given("bos_id")) config.bos_id = ids.begin;
    if (!given("eos_id")) config.eos_id = ids.end;
    if (!given("decoder_start_id") && config.family == Family::encoder_decoder) {
      // As in T5 and Marian: the decoder starts with the padding id, if there is one.
      config.decoder_start_id = ids.pad >= 0 ? ids.pad : ids.begin >= 0 ? ids.begin : ids.end;
    }
  }
  if (config.vocabulary < pieces) {
    throw Error(ErrorCode::invalid_argument,
                "the tokenizer has " + std::to_string(pieces) + " pieces, the model's vocabulary " +
                    std::to_string(config.vocabulary),
                "use the tokenizer that belongs to the model");
  }
  check(config, recipe.path + ": [model]");
  return config;
}

Network network_from(const ModelConfig& config, const Network* from, uint64_t seed,
                     std::vector<std::string>& fresh) {
  Network network(config, seed);
  if (!from) return network;
  std::vector<std::string> differing;
  for (const ParameterSpec& spec : network.parameters().specs()) {
    const Weight theirs = from->parameters().weight(spec.name);
    // NOLINTNEXTLINE(bugprone-branch-clone): missing, and of another size
    if (!theirs) {
      fresh.push_back(spec.name);
    } else if (theirs.value.rows == spec.rows && theirs.value.cols == spec.cols) {
      std::ranges::copy(from->parameters().values(spec.name),
                        network.parameters().values(spec.name).begin());
    } else if (spec.name.starts_with("head.")) {
      fresh.push_back(spec.name);  // another number of classes
    } else {
      differing.push_back(spec.name);
    }
  }
  if (!differing.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "[model] changes the shape of " + differing.front() + " and " +
                    std::to_string(differing.size() - 1) + " other weights of model.from",
                "keep the sizes of the model in model.from");
  }
  return network;
}

void write_task(const std::string& folder, Objective objective,
                const std::vector<std::string>& labels) {
  const std::string path = folder + "/config.json";
  Json json = Json::parse(text_of_file(path));
  json["finetuning_task"] = name_of(objective);
  if (!labels.empty()) {
    Json names = Json::object(), numbers = Json::object();
    for (size_t i = 0; i < labels.size(); ++i) {
      names[std::to_string(i)] = labels[i];
      numbers[labels[i]] = i;
    }
    json["id2label"] = std::move(names);
    json["label2id"] = std::move(numbers);
  }
  write_whole(path, json.dump(2) + "\n");
}

void write_generation_config(const std::string& folder, const Recipe& recipe,
                             const ModelConfig& config) {
  if (config.family == Family::encoder_only || config.head != Head::language_model) return;
  Json json = Json::object();
  const std::string before = recipe.model.from + "/generation_config.json";
  if (!recipe.model.from.empty() && fs::exists(before)) {
    Json theirs = parse_object(text_of_file(before));
    if (theirs.is_object()) json = std::move(theirs);
  }
  const auto set_id = [&](const char* key, int32_t id) {
    if (id >= 0 && !json.contains(key)) json[key] = id;
  };
  set_id("bos_token_id", config.bos_id);
  set_id("eos_token_id", config.eos_id);
  set_id("pad_token_id", config.pad_id);
  if (config.family == Family::encoder_decoder) {
    set_id("decoder_start_token_id", config.decoder_start_id);
    const Objective objective = recipe.objective.options.kind;
    const bool is_searched = objective == Objective::translation || objective == Objective::parsing;
    const auto set = [&](const char* name, const char* key, const Json& value) {
      const bool asked = recipe.origin(std::string("validate.") + key) != "default";
      if (asked || (is_searched && !json.contains(name))) json[name] = value;
    };
    set("num_beams", "beam", recipe.validate.beam);
    set("length_penalty", "length_penalty", recipe.validate.length_penalty);
  }
  if (!json.empty()) write_whole(folder + "/generation_config.json", json.dump(2) + "\n");
}

std::vector<ValidationExample> read_validation_examples(const CorpusOptions& corpus,
                                                        const Recipe& recipe) {
  std::vector<ValidationExample> examples;
  const Objective objective = recipe.objective.options.kind;
  // Prompts are for samples only, so a few are enough.
  const auto most = static_cast<size_t>(
      objective == Objective::causal_lm ? recipe.validate.samples : recipe.validate.max_sentences);
  if (objective == Objective::causal_lm && most == 0) return examples;
  const auto reader = open_records(corpus, objective, recipe.data.filters);
  for (Record record; (most == 0 || examples.size() < most) && reader->next(record);) {
    // A sentence with an empty translation counts in BLEU, as in sacrebleu.
    if (record.skip && objective != Objective::translation) continue;
    ValidationExample& e = examples.emplace_back();
    e.source = std::move(record.first);
    e.words = std::move(record.words), e.tags = std::move(record.tags);
    const bool is_labelled =
        objective == Objective::classification || objective == Objective::regression;
    if (is_labelled && record.has_second) e.second = std::move(record.second);
    e.target = is_labelled ? std::move(record.label) : std::move(record.second);
  }
  return examples;
}

Preparation prepare(const Recipe& recipe, const std::string& out, int threads,
                    const std::function<void(std::string_view)>& note, RankPlace place) {
  Preparation p;
  std::vector<CorpusOptions> corpora = corpora_of(recipe);
  p.tokenizer = tokenizer_for(recipe, corpora, out, threads, note);
  std::vector<std::string> validation_files = in_folder(recipe.data.folder, recipe.validate.files);
  if (recipe.validate.share > 0) {
    if (corpora.size() != 1) {
      throw Error(ErrorCode::invalid_argument, "validate.share must be 0 with several corpora",
                  "set validate.files");
    }
    make_folder(out + "/data");
    const CorpusSplit split =
        split_corpus(corpora[0], recipe.objective.options.kind, recipe.data.filters,
                     recipe.validate.share, out + "/data");
    corpora[0] = split.training;
    validation_files = split.validation.files;
  }

  p.config = fitted_config(recipe, *p.tokenizer, 1);
  StreamOptions options;
  options.corpora = corpora;
  options.filters = recipe.data.filters;
  options.objective = recipe.objective.options;
  options.batch_tokens = recipe.data.batch_tokens;
  options.batch_sentences = recipe.data.batch_sentences;
  options.group_by_length = recipe.data.group_by_length;
  options.pool_examples = recipe.data.pool_examples;
  options.seed = recipe.train.seed;
  options.temperature = recipe.data.temperature;
  options.cache_folder = recipe.data.cache.empty() ? out + "/data" : recipe.data.cache;
  options.threads = threads;
  options.rank = place.rank, options.ranks = place.ranks;
  make_folder(options.cache_folder);
  if (options.objective.decoder_start_id < 0) {
    options.objective.decoder_start_id = p.config.decoder_start_id;
  }
  // Sequences must fit into the position table.
  if (p.config.position == Position::learned || p.config.position == Position::sinusoidal) {
    options.filters.max_tokens = std::min(options.filters.max_tokens, p.config.max_positions);
    options.objective.block_tokens =
        std::min(options.objective.block_tokens, p.config.max_positions);
  }
  p.training = std::make_unique<BatchStream>(options, p.tokenizer);
  for (const CorpusReport& report : p.training->reports()) note("data: " + report.summary());
  if (options.objective.kind == Objective::classification) {
    check_classes(p.training->labels(), corpora.front());
  }
  p.stream_options = options;
  if (!validation_files.empty()) {
    StreamOptions held_out = options;
    CorpusOptions corpus = corpora[0];
    corpus.files = validation_files;
    held_out.corpora = {corpus};
    p.validation_corpus = corpus;
    held_out.shuffle = false;
    held_out.rank = 0, held_out.ranks = 1;  // the trainer divides these among the ranks
    held_out.objective.random_blocks = false;
    held_out.objective.subword_dropout = 0;
    held_out.labels = p.training->labels();
    p.validation = std::make_unique<BatchStream>(held_out, p.tokenizer);
    p.validation_options = held_out;
    for (const CorpusReport& report : p.validation->reports()) {
      note("validation: " + report.summary());
    }
  }
  const auto labels = static_cast<int>(p.training->labels().size());
  if (labels > 0) p.config = fitted_config(recipe, *p.tokenizer, labels);
  return p;
}

}  // namespace heed
