// Model folders and presets: what they are, how large, and other forms of them.
//
//   heed::ModelInfo info = heed::preset_info("transformer-base");
//   heed::convert_model("models/bert", "models/bert-f16", {.type = "f16"});
//   heed::quantize_model("models/opus", "models/opus-int8", {.type = "int8"});
//
// A model folder is in Hugging Face's layout: config.json, model.safetensors (or its shards, or
// pytorch_model.bin). All functions throw heed::Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heed {

class Network;

// Throws if `path` is no folder with a config.json, and says what it is instead: nothing, a name on
// the Hugging Face Hub, a GGUF or another file. Everything that loads a model calls it.
void check_model_folder(const std::string& path);

struct PresetInfo {
  std::string name;
  std::string about;
  int64_t parameters = 0;
};
std::vector<PresetInfo> list_presets();

// One field of a model's configuration, as it is spelt in config files.
struct Setting {
  std::string name;
  std::string value;  // JSON
  std::string help;
};

// Working memory (beside the weights) of a batch, known before anything runs.
struct ShapeMemory {
  int64_t sequences = 0, length = 0;
  int64_t inference_bytes = 0;
  int64_t training_bytes = 0;  // activations, their gradients, and those of weights in flight
};

// A weight as the model declares it: "encoder.0.self.qkv.weight" [rows, cols].
struct WeightShape {
  std::string name;
  int64_t rows = 0, cols = 0;
};

struct ModelInfo {
  std::string model_type;  // "marian"; "heed" where Hugging Face has no equivalent
  int64_t parameters = 0;
  int64_t weight_bytes = 0;    // in memory, for inference; of a preset as f32
  std::string weight_type;     // "f32" or one of weight_type_choices(): of most of its weights
  int64_t training_bytes = 0;  // weights and Adam's two slots; kept gradients come on top
  double flops_per_token = 0;  // of one forward, products of the weights alone
  std::vector<ShapeMemory> memory;
  std::vector<Setting> settings;
  std::vector<WeightShape> weights;  // in the order of the model
};
ModelInfo model_info(const std::string& folder);
// Of one that is loaded: Model::network().
ModelInfo model_info(const Network& network);
ModelInfo preset_info(const std::string& name);

// Throws invalid_argument if `to` is the folder of `from` itself, where writing would lose it.
void check_another_folder(const std::string& from, const std::string& to);

struct ConvertOptions {
  std::string type{};  // f32, f16 or bf16; empty: each tensor keeps its type
};
struct ConvertReport {
  std::string type;     // of most weights that were written: f16, int8 …
  bool copied = false;  // tensors and config.json are those of `from`, byte for byte
};
// Writes the model of `from` to the folder `to`, which must be another, as safetensors. What need not
// change is copied byte for byte: tensors, with those that Heed does not need; config.json; the
// tokenizer's files, generation_config.json, the model card and the like. Such files that `to` has of
// another model are removed. With a type, a quantized model becomes the floats that it stands for.
ConvertReport convert_model(const std::string& from, const std::string& to,
                            const ConvertOptions& options = {});

// Weights of fewer bytes, for faster inference in less memory (docs/quantization.md).
struct QuantizeOptions {
  std::string type = "int8";  // one of weight_type_choices()
  // Weights whose names (those of the report) this regular expression finds something in stay f16.
  std::string keep_wide{};
  int threads = 0;  // 0: every CPU this process may use
};
// "f16, int8 or int4": the types that a model can be quantized to.
std::string weight_type_choices();
// What each of them is, a line for each.
std::string weight_type_help();
struct QuantizedLayer {
  std::string name;  // "encoder.0.self.qkv.weight"
  std::string type;
  int64_t rows = 0, cols = 0;
  int64_t bytes = 0;
  double relative_error = 0;  // |W - Ŵ| / |W|, root mean squares
};
struct QuantizeReport {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of the tensors in the folders
  std::vector<QuantizedLayer> layers;         // the matrices, in the order of the model
};
// Like convert_model(): to another folder, tokenizer and all.
QuantizeReport quantize_model(const std::string& from, const std::string& to,
                              const QuantizeOptions& options);

// Runs raw token ids and writes tensors, to compare Heed with another implementation. The inputs
// are a JSON object: "sequences", or "sources" and "decoder_inputs"; where they apply
// "token_type_ids", "global_tokens" (places in each sequence) and "labels".
struct ForwardOptions {
  std::string inputs;      // a JSON file
  std::string out;         // a safetensors file to write; empty: none
  std::string gradients;   // a safetensors file for the gradients of the loss; empty: none
  bool attention = false;  // write attention maps too
  int threads = 0;         // 0: every CPU this process may use
};
struct ForwardTensor {
  std::string name;
  std::vector<int64_t> shape;
};
struct ForwardResult {
  std::optional<double> loss;  // the mean over the labels, when there are any
  std::vector<ForwardTensor> tensors;
};
ForwardResult run_forward(const std::string& folder, const ForwardOptions& options);

}  // namespace heed
