// A model: what it is, its weights, and the text that runs them.
//
//   const Model model = Model::load("models/bert");       // a folder in Hugging Face's layout
//   Var hidden = model.transformer().encode(ctx, {.batch = packed.batch()});
//   model.save("copy");
//
// A const Model is safe to use from many threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/hugging_face.h"
#include "model/transformer.h"

namespace heed {

struct ModelLoadOptions {
  bool dropout = true;  // false: all of it 0, so that gradients depend on nothing random
};

struct ModelSaveOptions {
  DType dtype = DType::f32;                      // f32, f16 or bf16
  uint64_t max_shard_bytes = uint64_t{5} << 30;  // larger models become several files
};

class Model {
 public:
  // Weights that start from a seed.
  explicit Model(const ModelConfig& config, uint64_t seed = 0);
  // Reads config.json and the tensors beside it. Throws not_found, corrupt_file or unsupported.
  static Model load(const std::string& folder, const ModelLoadOptions& options = {});

  // Writes config.json and the tensors, as a Hugging Face model where one is equivalent. The folder
  // is made if it is not there.
  void save(const std::string& folder, const ModelSaveOptions& options = {}) const;

  const ModelConfig& config() const { return parts_->hf.config; }
  const HfConfig& hugging_face() const { return parts_->hf; }
  Parameters& parameters() { return parts_->parameters; }
  const Parameters& parameters() const { return parts_->parameters; }
  const Transformer& transformer() const { return *parts_->transformer; }
  // For training. References to transformer() from before are void.
  void add_gradients();

 private:
  Model(HfConfig hf, Parameters parameters);

  // On the heap: the transformer points at the others, also when the model moves.
  struct Parts {
    HfConfig hf;
    Parameters parameters;
    std::optional<Transformer> transformer;  // last to come, first to go
  };
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
