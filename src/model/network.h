// A network: its configuration, its weights and the Transformer that runs them.
//
//   const Network model = Network::load("models/bert");       // a folder in Hugging Face's layout
//   Var hidden = model.transformer().hidden(ctx, {.source = packed.batch()});
//   model.save("copy");
//
// A const Network is safe to use from many threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/hugging_face/hugging_face.h"
#include "model/transformer.h"

namespace heed {

struct NetworkLoadOptions {
  bool dropout = true;  // false: all dropout is 0, so that gradients are deterministic
  WeightForm form = WeightForm::trainable;
};

struct NetworkSaveOptions {
  DType dtype = DType::f32;                      // f32, f16 or bf16: of what is not packed
  uint64_t max_shard_bytes = uint64_t{5} << 30;  // larger models become several files
};

class Network {
 public:
  // Newly initialized weights.
  explicit Network(const ModelConfig& config, uint64_t seed = 0);
  // Given weights of the same config.
  Network(HfConfig hf, Parameters parameters);
  // Reads config.json and the tensors beside it. Throws not_found, corrupt_file or unsupported.
  static Network load(const std::string& folder, const NetworkLoadOptions& options = {});

  // The same from a config.json's text and tensors that are in memory; `where` names them in
  // messages.
  static Network from_files(const std::string& config, const TensorFile& tensors,
                            const std::string& where, const NetworkLoadOptions& options = {});

  // Writes config.json and the tensors, as a Hugging Face model where an equivalent exists. Creates
  // the folder.
  void save(const std::string& folder, const NetworkSaveOptions& options = {}) const;

  const ModelConfig& config() const { return parts_->hf.config; }
  const HfConfig& hugging_face() const { return parts_->hf; }
  Parameters& parameters() { return parts_->parameters; }
  const Parameters& parameters() const { return parts_->parameters; }
  const Transformer& transformer() const { return *parts_->transformer; }
  // For training. The first call invalidates references to transformer().
  void add_gradients(GradientMemory memory = GradientMemory::full);
  // See Transformer; after add_gradients().
  void set_activation_checkpointing(bool on) {
    parts_->transformer->set_activation_checkpointing(on);
  }
  bool activation_checkpointing() const { return parts_->transformer->activation_checkpointing(); }

 private:
  // On the heap: the transformer points at the others, also when the model moves.
  struct Parts {
    HfConfig hf;
    Parameters parameters;
    std::optional<Transformer> transformer;  // borrows the others
  };
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
