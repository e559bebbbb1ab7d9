// Hugging Face folders in and out: config.json and the names of tensors.
//
//   TensorFile file = TensorFile::open("models/bert");
//   HfConfig hf = hf_read_config(json, "models/bert/config.json", file);
//   Parameters parameters = hf_load(hf, file, "models/bert");
//   HfTensors tensors = hf_tensors(hf, parameters);   // the way back, byte for byte
//
// Architectures are tables (hf_architectures.h), used in both directions. What a file says and
// Heed does not understand is an error that names it, and never a guess.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/files/tensor_file.h"
#include "model/parameters.h"

namespace heed {

// A config.json.
struct HfConfig {
  ModelConfig config;
  std::string model_type;          // "bert"; "heed" for what Hugging Face has no equivalent of
  std::string architecture;        // "BertForMaskedLM"
  std::string other_fields{"{}"};  // JSON: what has no meaning to Heed, kept for the way back
  std::string quantization{};      // the weight type that config.json names, docs/quantization.md
};

// The model types that can be read and written.
std::vector<std::string> hf_model_types();

// `where` names the file in messages. Throws unsupported with all fields that Heed does not know
// or cannot follow. `tensors` decides what no config says, such as whether there is a pooler.
HfConfig hf_read_config(const std::string& json, const std::string& where,
                        const TensorFile& tensors);

// The same model as a Hugging Face architecture if one can express it, else as "heed". Dropout
// alone does not decide: where an architecture has fewer kinds of it, the nearest is written.
HfConfig hf_equivalent(const ModelConfig& config);

// The text of config.json; `dtype` is that of the tensors beside it, of those that are floats.
std::string hf_write_config(const HfConfig& hf, DType dtype = DType::f32);

// What becomes of the tensors in a file.
enum class WeightForm {
  trainable,  // plain floats; quantized ones are an error
  floats,     // plain floats, also of quantized ones
  // For inference: matrices are packed in the weight type of the file, if it has one; else as f32.
  stored,
};

// Every missing, extra and misshapen tensor is reported in one error, before anything is allocated.
Parameters hf_load(const HfConfig& hf, const TensorFile& file, const std::string& where,
                   WeightForm form = WeightForm::trainable);

// Tensors under their Hugging Face names. Views borrow the parameters or `owned`. Packed weights
// are written as what they are, others as `dtype`.
struct HfTensors {
  std::vector<TensorView> views;
  std::deque<std::vector<std::byte>> owned{};
};
HfTensors hf_tensors(const HfConfig& hf, const Parameters& parameters, DType dtype = DType::f32);
// The gradients of those that are weights, likewise.
HfTensors hf_gradients(const HfConfig& hf, const Parameters& parameters);

}  // namespace heed
