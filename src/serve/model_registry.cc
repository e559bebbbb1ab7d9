#include "serve/model_registry.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <regex>

#include "heed/error.h"

namespace heed::serve {
namespace {

constexpr const char* kParsing = "parsing";  // Model::task()

// "en" of "__en__", ">>en<<" or "en_XX"; "eng_Latn" as it is. Empty: not a language token.
std::string language_of(const std::string& piece) {
  static const std::regex kForms(
      "__([a-z]{2,3})__|>>([a-zA-Z_]{2,12})<<|([a-z]{2})_[A-Z]{2}|([a-z]{3}_[A-Z][a-z]{3})");
  if (piece.size() < 5 || piece.size() > 16) return {};
  std::smatch match;
  if (!std::regex_match(piece, match, kForms)) return {};
  for (size_t i = 1; i < match.size(); ++i) {
    if (match[i].matched) return match[i].str();
  }
  return {};
}

// Two languages at the end of a name: "en-de", "opus-mt-en-de".
Languages languages_in(const std::string& name) {
  static const std::regex kPair("(?:.*[-_./])?([a-z]{2,3})[-_]([a-z]{2,3})");
  std::smatch match;
  if (!std::regex_match(name, match, kPair)) return {};
  return {.sources = {match[1].str()}, .targets = {match[2].str()}};
}

Languages find_languages(const std::string& name, const std::string& folder, const Model& model) {
  if (!model.has_source() || !model.can_generate() || !model.has_tokenizer()) return {};
  if (model.task() == kParsing) return {};
  Languages from_name = languages_in(name);
  if (from_name.sources.empty()) from_name = languages_in(default_model_name(folder));
  std::set<std::string> named;
  bool has_marian_tokens = false;  // >>de<< in the source selects the target language only
  const Tokenizer& tokenizer = model.tokenizer();
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string piece = tokenizer.piece(static_cast<int32_t>(id));
    const std::string language = language_of(piece);
    if (language.empty()) continue;
    named.insert(language);
    has_marian_tokens = has_marian_tokens || piece.starts_with(">>");
  }
  // A single piece of that form may be a word.
  constexpr size_t kFewest = 2;
  if (named.size() < kFewest) return from_name;
  Languages result{.sources = named, .targets = named, .has_tokens = true};
  if (has_marian_tokens) result.sources = from_name.sources;
  return result;
}

template <class T, class Make>
T& made(std::mutex& mutex, std::unique_ptr<T>& place, const Make& make) {
  const std::lock_guard lock(mutex);
  if (!place) place = make();
  return *place;
}

}  // namespace

std::string default_model_name(const std::string& folder) {
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

void check_model_name(const std::string& name) {
  constexpr size_t kMostLetters = 100;
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kMostLetters && std::ranges::all_of(name, is_fine)) return;
  throw Error(ErrorCode::invalid_argument, "'" + name + "' cannot be a model's name",
              "names are made of letters, digits, '.', '_' and '-': NAME=DIR gives a folder one");
}

ServedModel::ServedModel(std::string name, std::string folder, const ModelSettings& settings)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      settings_(settings),
      model_(Model::load(folder_)),
      languages_(find_languages(name_, folder_, model_)),
      loaded_at_(std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()) {
  // Listed as able to do nothing, it would fail only when it is used.
  if (abilities().empty()) model_.tokenizer();  // throws, and says why there is none
}

const std::shared_ptr<Engine>& ServedModel::engine() {
  const std::lock_guard lock(mutex_);
  if (!engine_) {
    engine_ = std::make_shared<Engine>(
        model_,
        EngineOptions{.threads = settings_.threads, .kv_memory_bytes = settings_.kv_memory_bytes});
  }
  return engine_;
}

Translator& ServedModel::translator() {
  const std::shared_ptr<Engine> shared = engine();
  return made(mutex_, translator_, [&] { return std::make_unique<Translator>(shared); });
}
Parser& ServedModel::parser() {
  const std::shared_ptr<Engine> shared = engine();
  return made(mutex_, parser_, [&] { return std::make_unique<Parser>(shared); });
}
const Filler& ServedModel::filler() {
  return made(mutex_, filler_, [&] { return std::make_unique<Filler>(model_, task_options()); });
}
const Classifier& ServedModel::classifier() {
  return made(mutex_, classifier_,
              [&] { return std::make_unique<Classifier>(model_, task_options()); });
}
const Tagger& ServedModel::tagger() {
  return made(mutex_, tagger_, [&] { return std::make_unique<Tagger>(model_, task_options()); });
}
const Embedder& ServedModel::embedder() {
  return made(mutex_, embedder_,
              [&] { return std::make_unique<Embedder>(model_, task_options()); });
}
const Scorer& ServedModel::scorer() {
  return made(mutex_, scorer_, [&] { return std::make_unique<Scorer>(model_, task_options()); });
}
const Predictor& ServedModel::predictor() {
  return made(mutex_, predictor_,
              [&] { return std::make_unique<Predictor>(model_, task_options()); });
}

const EmbedOptions& ServedModel::embed_settings() {
  return made(mutex_, embed_settings_,
              [&] { return std::make_unique<EmbedOptions>(embed_options(folder_)); });
}
const ModelInfo& ServedModel::info() {
  return made(mutex_, info_,
              [&] { return std::make_unique<ModelInfo>(model_info(model_.network())); });
}

bool ServedModel::is_parser() const { return model_.task() == kParsing; }

// The names are those of the commands.
std::vector<std::string> ServedModel::abilities() const {
  // Prompts may be token ids, everything else is text.
  if (!model_.has_tokenizer()) {
    return model_.can_generate() ? std::vector<std::string>{"generate"}
                                 : std::vector<std::string>{};
  }
  std::vector<std::string> list;
  const std::string head = model_.head();
  if (model_.can_generate()) {
    if (model_.has_source()) list.emplace_back(is_parser() ? "parse" : "translate");
    list.insert(list.end(), {"generate", "score"});
  }
  if (head == "masked_lm") list.emplace_back("fill");
  if (head == "classifier" || head == "regression") list.emplace_back("classify");
  if (head == "token_classifier") list.emplace_back("tag");
  list.insert(list.end(), {"embed", "attend", "tokenize"});
  return list;
}

std::optional<EngineStatistics> ServedModel::statistics() const {
  std::shared_ptr<Engine> engine;
  {
    const std::lock_guard lock(mutex_);
    engine = engine_;
  }
  if (!engine) return {};
  return engine->statistics();
}

void ModelRegistry::load(const std::string& name, const std::string& folder) {
  check_model_name(name);
  const std::lock_guard loading(loading_);
  auto model = std::make_shared<ServedModel>(name, folder, settings_);
  const std::lock_guard lock(mutex_);
  const auto old = std::ranges::find(models_, name, [](const auto& m) { return m->name(); });
  if (old != models_.end()) {
    std::swap(*old, model);  // the old model is destroyed outside the lock, after its last request
  } else {
    models_.push_back(std::move(model));
  }
}

bool ModelRegistry::unload(const std::string& name) {
  ServedModelPtr old;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(models_, name, [](const auto& m) { return m->name(); });
  if (found == models_.end()) return false;
  old = std::move(*found);
  models_.erase(found);
  return true;
}

std::vector<std::string> ModelRegistry::reload() {
  std::vector<std::string> errors;
  for (const ServedModelPtr& model : all()) {
    try {
      load(model->name(), model->folder());
    } catch (const Error& error) {
      errors.push_back(model->name() + ": " + error.what());
    }
  }
  return errors;
}

ServedModelPtr ModelRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const ServedModelPtr& model : models_) {
    if (model->name() == name) return model;
  }
  return nullptr;
}

std::vector<ServedModelPtr> ModelRegistry::all() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

}  // namespace heed::serve
