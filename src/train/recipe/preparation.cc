#include "train/recipe/preparation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/process_memory.h"
#include "base/text/number_text.h"
#include "data/records/record_reader.h"
#include "data/records/record_split.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"
#include "train/recipe/recipe_checks.h"
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
  const std::string path = out + "/tokenizer.txt";
  TokenizerText text;
  if (training.files.empty()) {
    text = tokenizer_text(corpora, recipe.objective.options.kind, path);
    training.files = text.files;
  }
  std::error_code not_written;
  try {
    TokenizerPtr tokenizer = train_tokenizer(training);
    fs::remove(path, not_written);
    return tokenizer;
  } catch (const Error& error) {
    fs::remove(path, not_written);
    if (text.skipped.empty()) throw;
    // Too little text is often text that was skipped.
    std::string message = error.what();
    for (const CorpusReport& report : text.skipped) {
      message += "; " + report.name + ": " + std::to_string(report.read - report.kept) + " of " +
                 std::to_string(report.read) + " records were skipped: " + report.skipped();
    }
    throw Error(error.code(), message, "correct the named lines first; then " + error.hint());
  }
}

// Keys that have no effect, because the tokenizer is loaded.
void note_unused_keys(const Recipe& recipe, const std::string& folder,
                      const std::function<void(std::string_view)>& note) {
  std::string unused;
  for (const auto& [key, origin] : recipe.origins) {
    if (!key.starts_with("tokenizer.") || key == "tokenizer.from" || key == "tokenizer.type") {
      continue;
    }
    unused += (unused.empty() ? "" : ", ") + key;
  }
  if (unused.empty()) return;
  note("note: not used, because the tokenizer is that of " + folder + ": " + unused);
}

// Whether a model folder has a tokenizer file of any kind.
bool has_tokenizer_files(const std::string& folder) {
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename();
    if (name == "tokenizer.json" || name == "merges.txt" || name.starts_with("vocab.") ||
        name.ends_with(".model") || name.ends_with(".spm")) {
      return true;
    }
  }
  return false;
}

// Trained once: OUT/tokenizer is complete or absent.
TokenizerPtr tokenizer_for(const Recipe& recipe, const std::vector<CorpusOptions>& corpora,
                           const std::string& out, int threads,
                           const std::function<void(std::string_view)>& note) {
  std::string from = recipe.tokenizer.from;
  if (from.empty() && recipe.tokenizer.type.empty()) from = recipe.model.from;
  if (!from.empty()) {
    TokenizerPtr tokenizer = load_tokenizer(from);
    note_unused_keys(recipe, from, note);
    if (!recipe.model.from.empty() && from != recipe.model.from) {
      check_same_pieces(*tokenizer, recipe.model.from, "model.from", "the tokenizer");
    }
    return tokenizer;
  }
  if (recipe.tokenizer.type == "byte") {
    TokenizerPtr tokenizer = make_tokenizer("byte");
    if (!recipe.model.from.empty()) {
      check_same_pieces(*tokenizer, recipe.model.from, "model.from", "the tokenizer");
    }
    return tokenizer;
  }
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

// An id must be the same piece for both.
void check_same_pieces(const Tokenizer& tokenizer, const std::string& folder,
                       const std::string& other_name, const std::string& name) {
  TokenizerPtr other;
  try {
    other = load_tokenizer(folder);
  } catch (const Error& error) {
    // A folder with weights alone has nothing to compare.
    const bool unknown =
        error.code() == ErrorCode::not_found || error.code() == ErrorCode::unsupported;
    if (unknown && !has_tokenizer_files(folder)) return;
    throw;
  }
  const int64_t pieces = std::min(other->vocabulary_size(), tokenizer.vocabulary_size());
  for (int32_t id = 0; id < pieces; ++id) {
    const std::string mine = tokenizer.piece(id), theirs = other->piece(id);
    if (mine == theirs) continue;
    throw Error(ErrorCode::invalid_argument,
                folder + ": " + other_name + " must have the same vocabulary: its piece " +
                    std::to_string(id) + " is '" + theirs + "', that of " + name + " is '" + mine +
                    "'",
                "use the tokenizer of that folder: --set tokenizer.from=" + folder);
  }
}

void make_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorCode::invalid_argument, folder + ": " + failed.message(),
                "--out takes a folder that can be written");
  }
}

namespace {

void check_config(const Recipe& recipe, const ModelConfig& config) {
  const std::vector<std::string> found = validate(config);
  if (found.empty()) return;
  std::vector<RecipeProblem> problems;
  for (const std::string& problem : found) {
    problems.push_back({recipe.path + ": [model] " + problem,
                        "`heed info --preset NAME` shows every field of a preset"});
  }
  throw_problems(recipe.path + ": [model]", problems);
}

// The part of fitted_config() that needs no tokenizer. `base`: recipe_model_config().
ModelConfig task_config(const Recipe& recipe, const ModelConfig& base, int labels) {
  ModelConfig config = base;
  config.head = Head::none, config.labels = 0;
  check_config(recipe, config);  // the shapes; a head is chosen below
  config = base;
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
  return config;
}

// Of the weights, their gradients and optimizer state; the activations come on top.
void check_model_memory(const Recipe& recipe, const ModelConfig& config) {
  const int64_t weights = parameter_count(config);
  const double needed =
      static_cast<double>(weights) *
      static_cast<double>(bytes_per_weight(
          recipe.optimizer, gradient_memory(recipe.optimizer, recipe.train.accumulate)));
  const int64_t limit = memory_limit_bytes();
  if (limit <= 0 || needed <= static_cast<double>(limit)) return;
  const auto gigabytes = [](double bytes) { return fixed(bytes / 1e9, 1) + " GB"; };
  throw Error(ErrorCode::out_of_memory,
              "the model must fit into memory: its " + std::to_string(weights) +
                  " parameters need " + gigabytes(needed) +
                  " with gradients and optimizer state, this process can use " +
                  gigabytes(static_cast<double>(limit)),
              "reduce model.width, model.ffn or the number of layers; optimizer.moments = \"bf16\" "
              "halves the optimizer state");
}

}  // namespace

ModelConfig fitted_config(const Recipe& recipe, const Tokenizer& tokenizer, int labels) {
  const ModelConfig base = recipe_model_config(recipe);
  ModelConfig config = task_config(recipe, base, labels);
  const auto given = [&](const char* field) { return overrides_model(recipe, field); };
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
                "model.vocabulary must be at least the " + std::to_string(pieces) +
                    " pieces of the tokenizer, got " + std::to_string(config.vocabulary),
                recipe.model.from.empty()
                    ? "leave model.vocabulary out: it follows the tokenizer"
                    : "use the tokenizer of model.from: --set tokenizer.from=");
  }
  check_config(recipe, config);
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
    const Weight mine = network.parameters().weight(differing.front());
    const Weight theirs = from->parameters().weight(differing.front());
    const auto shape = [](int64_t rows, int64_t cols) {
      return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
    };
    const size_t others = differing.size() - 1;
    throw Error(ErrorCode::invalid_argument,
                "[model] must keep the sizes of model.from: " + differing.front() + " would be " +
                    shape(mine.value.rows, mine.value.cols) + ", in model.from it is " +
                    shape(theirs.value.rows, theirs.value.cols) +
                    (others == 0 ? ""
                                 : "; " + std::to_string(others) + " more " +
                                       (others == 1 ? "weight differs" : "weights differ")),
                "remove the keys of [model] that change sizes, such as width, layers, vocabulary "
                "or max_positions");
  }
  return network;
}

bool has_text_pairs(const Recipe& recipe) {
  const Objective objective = recipe.objective.options.kind;
  if (objective != Objective::classification && objective != Objective::regression) return false;
  const auto has_second = [](const CorpusOptions& c) { return !c.second_column.empty(); };
  return has_second(recipe.data.corpus) || std::ranges::any_of(recipe.data.corpora, has_second);
}

void write_task(const std::string& folder, Objective objective,
                const std::vector<std::string>& labels, bool text_pairs) {
  const std::string path = folder + "/config.json";
  Json json = Json::parse(text_of_file(path));
  json["finetuning_task"] = name_of(objective);
  if (text_pairs) json["heed_text_pairs"] = true;
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
  // Before the data is read, which may take minutes.
  ModelConfig least = task_config(recipe, recipe_model_config(recipe), 1);
  check_config(recipe, least);
  if (!overrides_model(recipe, "vocabulary")) least.vocabulary = 1;  // the tokenizer's
  check_model_memory(recipe, least);
  const Objective objective = recipe.objective.options.kind;
  std::vector<std::string> validation_files = in_folder(recipe.data.folder, recipe.validate.files);
  for (const CorpusOptions& corpus : corpora) open_records(corpus, objective, recipe.data.filters);
  if (!validation_files.empty()) {
    CorpusOptions held_out = corpora[0];
    held_out.files = validation_files;
    open_records(held_out, objective, recipe.data.filters);
  }
  p.tokenizer = tokenizer_for(recipe, corpora, out, threads, note);
  if (recipe.validate.share > 0) {
    make_folder(out + "/data");
    const CorpusSplit split = split_corpus(corpora[0], objective, recipe.data.filters,
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
  check_model_memory(recipe, p.config);
  return p;
}

}  // namespace heed
