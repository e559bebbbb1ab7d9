#include "model/network.h"

#include <filesystem>

#include "base/files/atomic_file.h"
#include "heed/error.h"
#include "heed/model_files.h"
#include "model/files/safetensors.h"

namespace heed {
namespace {

Parameters initialised(const ModelConfig& config, uint64_t seed) {
  Parameters parameters(config);
  parameters.initialise(seed);
  return parameters;
}

}  // namespace

Network::Network(HfConfig hf, Parameters parameters) {
  auto parts = std::unique_ptr<Parts>(new Parts{std::move(hf), std::move(parameters), {}});
  parts->transformer.emplace(parts->hf.config, parts->parameters);
  parts_ = std::move(parts);
}

Network::Network(const ModelConfig& config, uint64_t seed)
    : Network(hf_equivalent(config), initialised(config, seed)) {}

Network Network::load(const std::string& folder, const NetworkLoadOptions& options) {
  check_model_folder(folder);
  const MappedFile config(folder + "/config.json");
  const std::string text(reinterpret_cast<const char*>(config.bytes().data()), config.size());
  hf_check_model_type(text, folder + "/config.json");
  const TensorFile tensors = TensorFile::open(folder);
  return from_files(text, tensors, folder, options);
}

Network Network::from_files(const std::string& config, const TensorFile& tensors,
                            const std::string& where, const NetworkLoadOptions& options) {
  HfConfig hf = hf_read_config(config, where + "/config.json", tensors);
  if (!options.dropout) {
    ModelConfig& c = hf.config;
    c.dropout = c.attention_dropout = c.activation_dropout = c.embedding_dropout = 0;
  }
  Parameters parameters = hf_load(hf, tensors, where, options.form);
  if (!parameters.is_packed()) hf.quantization.clear();
  return Network(std::move(hf), std::move(parameters));
}

void Network::save(const std::string& folder, const NetworkSaveOptions& options) const {
  const HfTensors tensors = hf_tensors(hugging_face(), parameters(), options.dtype);
  const std::string config = hf_write_config(hugging_face(), options.dtype);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorCode::invalid_argument, folder + ": " + failed.message(),
                "choose a folder that can be written");
  }
  write_safetensors_folder(folder, tensors.views, options.max_shard_bytes);
  AtomicFile file(folder + "/config.json");
  file.write(config);
  file.commit();
}

void Network::add_gradients(GradientMemory memory) {
  const bool first = parts_->parameters.gradients().empty();
  parts_->parameters.add_gradients(memory);
  if (first) parts_->transformer.emplace(parts_->hf.config, parts_->parameters);
}

}  // namespace heed
