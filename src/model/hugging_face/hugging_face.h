// Loading and saving models in Hugging Face's layout: config.json and tensors.
//
//   TensorFile file = TensorFile::open("models/bert");
//   HfConfig hf = hf_read_config(json, "models/bert/config.json", file);
//   Parameters parameters = hf_load(hf, file, "models/bert");
//   HfTensors tensors = hf_tensors(hf, parameters);   // the same bytes as in the file
//
// Architectures are tables (hf_architectures.h), used in both directions. An unknown field, value or
// tensor is an error that names it.
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
  std::string model_type;          // "bert"; "heed" if Hugging Face has no equivalent
  std::string architecture;        // "BertForMaskedLM"
  std::string other_fields{"{}"};  // JSON: fields that Heed does not use, kept for saving
  std::string quantization{};      // the weight type that config.json names, docs/quantization.md
};

// The supported model types.
std::vector<std::string> hf_model_types();

// Throws unsupported if config.json's text names another type. For use before the weights are
// opened, which may be missing or in a format of that type only.
void hf_check_model_type(const std::string& json, const std::string& where);

// `where` names the file in messages. Throws unsupported with all unknown fields and unsupported
// values. `tensors` decides what has no field, such as whether there is a pooler.
HfConfig hf_read_config(const std::string& json, const std::string& where,
                        const TensorFile& tensors);

// The same model as a Hugging Face architecture if one can express it, else as "heed". Dropout is
// not compared: an architecture with fewer dropout fields saves the nearest values.
HfConfig hf_equivalent(const ModelConfig& config);

// The text of config.json; `dtype` is that of the tensors beside it, of those that are floats.
std::string hf_write_config(const HfConfig& hf, DType dtype = DType::f32);

// The text of another config.json with the type of the tensors beside it, and with or (if empty)
// without a quantization; everything else stays as it is there, in its order.
std::string hf_edit_config(const std::string& json, DType dtype, const std::string& quantization);

// How the tensors of a file are held in memory.
enum class WeightForm {
  trainable,  // f32; quantized tensors are an error
  floats,     // f32; quantized tensors are dequantized
  // For inference: matrices are packed in the weight type of the file, if it has one; else as f32.
  stored,
};

// Every missing, extra and misshapen tensor is reported in one error, before anything is allocated.
Parameters hf_load(const HfConfig& hf, const TensorFile& file, const std::string& where,
                   WeightForm form = WeightForm::trainable);

// Tensors under their Hugging Face names. Views borrow the parameters or `owned`. Packed weights
// keep their type, others become `dtype`.
struct HfTensors {
  std::vector<TensorView> views;
  std::deque<std::vector<std::byte>> owned{};
};
HfTensors hf_tensors(const HfConfig& hf, const Parameters& parameters, DType dtype = DType::f32);
// The gradients of the weights, under the same names.
HfTensors hf_gradients(const HfConfig& hf, const Parameters& parameters);

}  // namespace heed
