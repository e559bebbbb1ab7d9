#include "heed/model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "heed/model_files.h"
#include "infer/search/generation_settings.h"
#include "model/network.h"
#include "text/tokenizer_json/json_tokenizer.h"
#include "text/tokenizers/tokenizer_folder.h"

namespace heed {
namespace {

using Json = nlohmann::json;

// "LABEL_7" without a name. config.json may have num_labels although the model has no such head.
std::vector<std::string> label_names(const Json& config, const ModelConfig& model) {
  const bool has_labels = model.head == Head::classifier || model.head == Head::regression ||
                          model.head == Head::token_classifier;
  const int count = has_labels ? model.labels : 0;
  std::vector<std::string> labels;
  const auto names = config.find("id2label");
  for (int i = 0; i < count; ++i) {
    std::string label = "LABEL_" + std::to_string(i);
    if (names != config.end() && names->is_object()) {
      const auto found = names->find(std::to_string(i));
      if (found != names->end() && found->is_string()) label = found->get<std::string>();
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

std::string task_name(const Json& config) {
  const auto task = config.find("finetuning_task");
  return task != config.end() && task->is_string() ? task->get<std::string>() : "";
}

// Folders of other tools name the task only.
bool has_pair_task(const Json& config) {
  static const std::set<std::string> kPairs = {"mrpc", "stsb", "sts-b", "qqp",     "mnli",
                                               "qnli", "rte",  "wnli",  "mnli-mm", "ax"};
  std::string task = task_name(config);
  std::ranges::transform(task, task.begin(), [](unsigned char c) { return std::tolower(c); });
  return kPairs.contains(task);
}

bool is_for_pairs(const Json& config, const ModelConfig& model) {
  if (model.head != Head::classifier && model.head != Head::regression) return false;
  const auto pairs = config.find("heed_text_pairs");
  if (pairs != config.end() && pairs->is_boolean()) return pairs->get<bool>();
  return has_pair_task(config);
}

std::string file_text(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

// Of a model whose files for generating name no end, or that has no such files.
void add_default_end(const ModelConfig& config, SearchOptions& search) {
  if (search.end_ids.empty() && config.eos_id >= 0) search.end_ids = {config.eos_id};
}

}  // namespace

Model::Model(std::shared_ptr<const Network> network, TokenizerPtr tokenizer, SearchOptions search)
    : network_(std::move(network)),
      tokenizer_(std::move(tokenizer)),
      search_(std::move(search)),
      labels_(label_names(Json::object(), network_->config())),
      name_("model") {
  add_default_end(network_->config(), search_);
}

Model Model::from_parts(const std::string& name, const std::string& config,
                        const TensorFile& tensors, const std::optional<std::string>& generation) {
  Model model;
  model.name_ = name;
  model.network_ = std::make_shared<const Network>(
      Network::from_files(config, tensors, name, {.dropout = false, .form = WeightForm::stored}));
  const Json json = parse_json(config, name + "/config.json");
  GenerationSettings settings = read_generation_settings(
      json, generation ? parse_json(*generation, name + "/generation_config.json") : Json(), name);
  model.search_ = std::move(settings.search), model.settings_ = std::move(settings.names);
  add_default_end(model.network_->config(), model.search_);
  model.labels_ = label_names(json, model.network_->config());
  model.task_ = task_name(json);
  model.takes_pairs_ = is_for_pairs(json, model.network_->config());
  return model;
}

Model Model::load(const std::string& folder, const ModelLoadOptions& options) {
  check_model_folder(folder);
  const std::string config = file_text(folder + "/config.json");
  hf_check_model_type(config, folder + "/config.json");
  const std::string generation = folder + "/generation_config.json";
  Model model = from_parts(
      folder, config, TensorFile::open(folder),
      std::filesystem::exists(generation) ? std::optional(file_text(generation)) : std::nullopt);
  if (!options.tokenizer) return model;
  try {
    model.tokenizer_ = load_tokenizer(folder);
  } catch (const Error& error) {
    model.tokenizer_error_ = std::make_shared<const Error>(error);
  }
  return model;
}

Model Model::from_memory(ModelFiles files) {
  const TensorFile tensors = TensorFile::from_bytes(std::move(files.tensors), files.name);
  Model model =
      from_parts(files.name, files.config, tensors,
                 files.generation.empty() ? std::nullopt : std::optional(files.generation));
  if (!files.tokenizer.empty()) {
    const std::string place = files.name + "/tokenizer.json";
    model.tokenizer_ =
        make_json_tokenizer(parse_json(files.tokenizer, place),
                            {.place = place, .files = {{"tokenizer.json", files.tokenizer}}});
  }
  return model;
}

std::string Model::family() const { return std::string(name_of(network_->config().family)); }
std::string Model::head() const { return std::string(name_of(network_->config().head)); }

bool Model::can_generate() const {
  const ModelConfig& c = network_->config();
  return c.family != Family::encoder_only && c.head == Head::language_model;
}

bool Model::has_source() const { return network_->config().family == Family::encoder_decoder; }

const Tokenizer& Model::tokenizer() const {
  if (tokenizer_) return *tokenizer_;
  if (tokenizer_error_) throw *tokenizer_error_;
  throw Error(ErrorCode::not_found, name_ + ": the model has no tokenizer",
              "give raw ids, or put the tokenizer's files into the model folder");
}

bool Model::has_setting(const std::string& name) const {
  return std::ranges::binary_search(settings_, name);
}

int64_t Model::vocabulary() const { return network_->config().output_vocabulary(); }

int64_t Model::max_positions() const { return network_->config().max_positions; }

int64_t Model::context_length() const {
  const ModelConfig& c = network_->config();
  const auto scaled = [&](int64_t positions) {
    return std::max<int64_t>(c.max_positions,
                             static_cast<int64_t>(static_cast<double>(positions) * c.rope_factor));
  };
  const bool is_windowed =
      !c.windows.empty() && std::ranges::none_of(c.windows, [](int64_t w) { return w == 0; });
  if (!positions_are_fixed() && (is_windowed || c.position == Position::alibi)) return 0;
  if (c.position != Position::rope) return c.max_positions;
  if (c.rope_scaling == RopeScaling::linear) return scaled(c.max_positions);
  if (c.rope_scaling == RopeScaling::yarn) return scaled(c.rope_original_positions);
  return c.max_positions;  // those of llama3 are the extended ones
}

bool Model::positions_are_fixed() const {
  const Position position = network_->config().position;
  return position == Position::learned || position == Position::sinusoidal;
}

}  // namespace heed
