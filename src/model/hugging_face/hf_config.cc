// config.json ↔ ModelConfig, driven by the table of architectures.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "heed/error.h"
#include "kernels/matmul/weight_types.h"
#include "model/hugging_face/hf_architectures.h"
#include "model/hugging_face/hf_tensor_map.h"
#include "model/hugging_face/hugging_face.h"

namespace heed {
namespace {

// Fields of transformers' PretrainedConfig, and of generation, that do not change what a model
// computes from given ids.
const std::vector<std::string>& ignored_everywhere() {
  static const std::vector<std::string> names{
      "model_type",
      "architectures",
      "transformers_version",
      "torch_dtype",
      "dtype",
      "_name_or_path",
      "name_or_path",
      "_attn_implementation",
      "_attn_implementation_autoset",
      "attn_implementation",
      "_commit_hash",
      "use_cache",
      "gradient_checkpointing",
      "initializer_range",
      "return_dict",
      "output_attentions",
      "output_hidden_states",
      "torchscript",
      "use_bfloat16",
      "tf_legacy_loss",
      "chunk_size_feed_forward",
      "is_encoder_decoder",
      "is_decoder",
      "cross_attention_hidden_size",
      "tie_word_embeddings",
      "tie_encoder_decoder",
      "finetuning_task",
      "heed_text_pairs",  // Heed's, of classifiers
      "is_composition",
      "use_return_dict",
      "xla_device",
      "output_past",
      "_num_labels",
      "id2label",
      "label2id",
      "num_labels",
      "problem_type",
      "tokenizer_class",
      "prefix",
      "task_specific_params",
      "bos_token_id",
      "eos_token_id",
      "pad_token_id",
      "sep_token_id",
      "cls_token_id",
      "mask_token_id",
      "unk_token_id",
      "decoder_start_token_id",
      // generation
      "max_length",
      "min_length",
      "max_new_tokens",
      "do_sample",
      "early_stopping",
      "num_beams",
      "num_beam_groups",
      "diversity_penalty",
      "temperature",
      "top_k",
      "top_p",
      "typical_p",
      "repetition_penalty",
      "length_penalty",
      "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size",
      "bad_words_ids",
      "num_return_sequences",
      "output_scores",
      "return_dict_in_generate",
      "forced_bos_token_id",
      "forced_eos_token_id",
      "remove_invalid_values",
      "exponential_decay_length_penalty",
      "renormalize_logits",
      "low_memory",
      "suppress_tokens",
      "begin_suppress_tokens",
  };
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : between) + text;
  return all;
}

const HfClass* class_named(const HfArchitecture& a, const std::string& name) {
  for (const HfClass& c : a.classes) {
    if (name == c.name) return &c;
  }
  return nullptr;
}

// A classifier class with one label, or with problem_type regression, is a regression.
Head class_head(Head head) { return head == Head::regression ? Head::classifier : head; }

const HfClass* class_for(const HfArchitecture& a, const ModelConfig& config) {
  for (const HfClass& c : a.classes) {
    if (c.head == class_head(config.head) && c.family == config.family) return &c;
  }
  return nullptr;
}

bool has_labels(Head head) {
  return class_head(head) == Head::classifier || head == Head::token_classifier;
}

// id2label, or num_labels; transformers' default is two.
void label_fields(HfFields& f, ModelConfig& c) {
  if (!f.reading()) {
    if (!has_labels(c.head)) return;
    Json id2label = Json::object(), label2id = Json::object();
    for (int i = 0; i < c.labels; ++i) {
      id2label[std::to_string(i)] = "LABEL_" + std::to_string(i);
      label2id["LABEL_" + std::to_string(i)] = i;
    }
    f.write("id2label", id2label);
    f.write("label2id", label2id);
    if (c.head == Head::regression) f.write("problem_type", "regression");
    if (c.head == Head::classifier) f.write("problem_type", "single_label_classification");
    return;
  }
  c.labels = 0;
  if (!has_labels(c.head)) return;
  int labels = 2;
  f.value({"num_labels"}, labels, 2);
  const Json* names = f.find("id2label");
  if (names && names->is_object()) labels = static_cast<int>(names->size());
  c.labels = labels;
  if (c.head == Head::token_classifier) return;
  const Json* type = f.find("problem_type");
  const bool is_said = type && type->is_string();
  if (is_said && *type != "regression" && *type != "single_label_classification") {
    f.unsupported("problem_type", *type, "regression, single_label_classification");
  }
  if (is_said ? *type == "regression" : labels == 1) c.head = Head::regression;
}

const HfArchitecture* find_architecture(const std::string& model_type) {
  for (const HfArchitecture& a : hf_architectures()) {
    if (model_type == a.model_type) return &a;
  }
  return nullptr;
}

// Only the letters and digits, in lower case: "XLM_Roberta" and "xlm-roberta" are the same.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return plain;
}

// Not the nearest name: qwen3 is no misspelt qwen2, and mixtral no mistral, but another architecture.
Error unknown_type(const std::string& model_type, const std::string& where) {
  const std::vector<std::string> types = hf_model_types();
  std::string hint = "use a model of one of these types";
  for (const std::string& type : types) {
    if (plain_name(type) == plain_name(model_type)) hint = "did you mean " + type + "?";
  }
  return {
      ErrorCode::unsupported,
      where + ": model_type is " + Json(model_type).dump() + ", supported: " + joined(types, ", "),
      hint};
}

// Heed's entry in config.json: {"format": "heed", "version": 1, "type": "int8"}.
constexpr const char* kQuantization = "quantization";
constexpr int kQuantizationVersion = 1;

Json quantization_entry(const std::string& type) {
  return {{"format", "heed"}, {"version", kQuantizationVersion}, {"type", type}};
}

const char* torch_name(DType dtype) {
  return dtype == DType::f16 ? "float16" : dtype == DType::bf16 ? "bfloat16" : "float32";
}

std::string read_quantization(const Json& json, const std::string& where) {
  const auto entry = json.find(kQuantization);
  if (entry == json.end()) return "";
  const auto has = [&](const char* key, const Json& value) {
    return entry->is_object() && entry->contains(key) && entry->at(key) == value;
  };
  for (const kernels::WeightTypeInfo& type : kernels::weight_types()) {
    if (type.is_named_in_config && has("format", "heed") && has("version", kQuantizationVersion) &&
        has("type", type.name)) {
      return type.name;
    }
  }
  const auto is_named = [](const kernels::WeightTypeInfo& type) { return type.is_named_in_config; };
  throw Error(ErrorCode::unsupported,
              where +
                  ": quantization must be {\"format\": \"heed\", \"version\": 1, \"type\": TYPE} "
                  "with TYPE " +
                  kernels::weight_type_list(is_named) + ", got " + entry->dump(),
              "quantize the model with this version of heed");
}

HfConfig read_heed(Json json, const std::string& where) {
  for (const char* key : {"model_type", "architectures", "torch_dtype", "transformers_version"}) {
    json.erase(key);
  }
  // Names of the labels and of the task, written by training.
  Json others = Json::object();
  for (const char* key : {"id2label", "label2id", "finetuning_task", "heed_text_pairs"}) {
    if (!json.contains(key)) continue;
    others[key] = json.at(key);
    json.erase(key);
  }
  HfConfig hf{config_from_json(json.dump(), {}, where), "heed", "HeedModel", others.dump()};
  check(hf.config, where);
  return hf;
}

// A class from config.json's list; the architecture's first where it has none.
const HfClass& read_class(const HfArchitecture& a, const Json& json, const std::string& where) {
  const auto found = json.find("architectures");
  if (found == json.end() || !found->is_array() || found->empty()) return a.classes.front();
  for (const Json& name : *found) {
    if (!name.is_string()) continue;
    if (const HfClass* c = class_named(a, name.get<std::string>())) return *c;
  }
  std::vector<std::string> names;
  for (const HfClass& c : a.classes) names.emplace_back(c.name);
  throw Error(ErrorCode::unsupported,
              where + ": architectures is " + found->dump() + ", supported for " + a.model_type +
                  ": " + joined(names, ", "),
              "convert the model to one of these first");
}

bool has_vocabulary_output(const ModelConfig& c) {
  return c.head == Head::language_model || c.head == Head::masked_lm;
}

// Normalizes `tying` where its values mean the same: without an output matrix, or with one embedding.
void forget_tying_of_no_output(ModelConfig& c) {
  const bool has_output = has_vocabulary_output(c);
  if (c.family != Family::encoder_decoder) {
    c.tying = c.tying != Tying::none || !has_output ? Tying::all : Tying::none;
  } else if (!has_output) {
    const bool shared = c.tying == Tying::all || c.tying == Tying::source_target;
    c.tying = shared ? Tying::all : Tying::none;
  }
}

HfConfig read_with(const HfArchitecture& a, const Json& json, const std::string& where,
                   const HfFields::HasTensor& has_tensor) {
  const HfClass& c = read_class(a, json, where);
  HfConfig hf{{}, a.model_type, c.name};
  hf.config.head = c.head;
  hf.config.family = c.family;
  HfFields fields(json, [&](const std::string& name) {
    return has_tensor(name) || has_tensor(a.prefix + name);
  });
  label_fields(fields, hf.config);
  a.fields(fields, hf.config);
  forget_tying_of_no_output(hf.config);
  fields.expect("pruned_heads", Json::object());
  fields.expect("tie_encoder_decoder", false);

  std::vector<std::string> problems = fields.problems(), unknown;
  Json others = Json::object();
  for (const std::string& key : fields.unread()) {
    if (contains(ignored_everywhere(), key) || contains(a.ignored_fields, key)) {
      others[key] = json.at(key);
    } else {
      unknown.push_back(key);
    }
  }
  if (!unknown.empty()) {
    problems.push_back("unknown or unsupported field" +
                       std::string(unknown.size() > 1 ? "s " : " ") + joined(unknown, ", "));
  }
  if (!problems.empty()) {
    throw Error(ErrorCode::unsupported,
                where + " (" + a.model_type + "): " + joined(problems, "; "),
                "Heed must support every field of config.json; it ignores none silently");
  }
  for (const char* key : {"id2label", "label2id", "problem_type"}) {
    if (json.contains(key)) others[key] = json.at(key);
  }
  // Heed uses the first of several ids; the others are kept for saving.
  const auto ends = json.find("eos_token_id");
  if (ends != json.end() && ends->is_array()) others["eos_token_id"] = *ends;
  for (const char* key : {"model_type", "architectures", "torch_dtype", "dtype"}) others.erase(key);
  hf.other_fields = others.dump();
  check(hf.config, where);
  return hf;
}

// The same model with fields that have no effect set to defaults, so that configs can be compared.
ModelConfig canonical(ModelConfig c) {
  const ModelConfig standard;
  const auto forget = [&](auto ModelConfig::*field) { c.*field = standard.*field; };
  const bool two = c.family == Family::encoder_decoder;
  if (c.target_vocabulary == c.vocabulary) c.target_vocabulary = 0;
  if (c.family == Family::decoder_only) c.encoder_layers = 0;
  if (c.family == Family::encoder_only) c.decoder_layers = 0;
  if (!two && c.decoder_heads > 0 && c.family == Family::decoder_only) c.heads = c.decoder_heads;
  if (!two && c.decoder_ffn > 0 && c.family == Family::decoder_only) c.ffn = c.decoder_ffn;
  if (c.decoder_heads == c.heads || !two) c.decoder_heads = 0;
  if (c.decoder_ffn == c.ffn || !two) c.decoder_ffn = 0;
  if (c.kv_heads == c.heads && c.decoder_heads == 0) c.kv_heads = 0;
  if (c.decoder_heads == 0 && c.heads > 0) {
    const int head_dim = c.stack(Side::encoder).head_dim;  // 1: a scale of 1 may be meant as such
    if (head_dim > 1 && c.attention_scale == 1 / std::sqrt(static_cast<float>(head_dim))) {
      c.attention_scale = 0;
    }
    if (c.width % c.heads == 0 && c.head_dim == c.width / c.heads) c.head_dim = 0;
  }
  if (c.position != Position::sinusoidal) forget(&ModelConfig::sinusoid_layout);
  if (c.position != Position::rope) {
    forget(&ModelConfig::rope_base), forget(&ModelConfig::rope_fraction);
    forget(&ModelConfig::rope_layout), forget(&ModelConfig::rope_scaling);
  }
  if (c.rope_scaling == RopeScaling::none) forget(&ModelConfig::rope_factor);
  if (c.rope_scaling != RopeScaling::llama3) {
    forget(&ModelConfig::rope_low_frequency_factor);
    forget(&ModelConfig::rope_high_frequency_factor);
  }
  if (!needs_original_positions(c.rope_scaling)) forget(&ModelConfig::rope_original_positions);
  if (c.position != Position::t5_bias) {
    forget(&ModelConfig::t5_buckets), forget(&ModelConfig::t5_max_distance);
  }
  if (c.norm == NormKind::rms_norm) forget(&ModelConfig::norm_bias);
  const int layers = c.family == Family::decoder_only ? c.decoder_layers
                     : two                            ? std::max(c.encoder_layers, c.decoder_layers)
                                                      : c.encoder_layers;
  c.windows = shortest_pattern(c.windows, layers);
  forget_tying_of_no_output(c);
  if (!has_vocabulary_output(c)) {
    forget(&ModelConfig::output_bias), forget(&ModelConfig::logits_scale);
    forget(&ModelConfig::logits_soft_cap);
  }
  if (!has_labels(c.head)) forget(&ModelConfig::labels);
  if (class_head(c.head) != Head::classifier && c.head != Head::embedding) {
    forget(&ModelConfig::pooling);
  }
  if (c.head == Head::masked_lm && c.head_activation == c.activation) {
    forget(&ModelConfig::head_activation);
  }
  return c;
}

// The same model without what only acts in training.
ModelConfig without_training(ModelConfig c) {
  c.pad_frozen = false;
  c.initialisation = Initialisation::by_family;
  c.dropout = c.embedding_dropout = c.attention_dropout = c.activation_dropout = 0;
  return c;
}

// The JSON of a config as this architecture; nullopt if it cannot express it.
std::optional<Json> write_with(const HfArchitecture& a, const ModelConfig& config) {
  const HfClass* hf_class = class_for(a, config);
  if (!hf_class) return std::nullopt;
  ModelConfig c = canonical(config);
  HfFields fields;
  fields.write("model_type", a.model_type);
  fields.write("architectures", Json::array({hf_class->name}));
  if (c.family == Family::encoder_decoder) fields.write("is_encoder_decoder", true);
  a.fields(fields, c);
  label_fields(fields, c);
  if (!fields.problems().empty()) return std::nullopt;
  return fields.json();
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names;
  for (const HfArchitecture& a : hf_architectures()) names.emplace_back(a.model_type);
  names.emplace_back("heed");
  return names;
}

void hf_check_model_type(const std::string& text, const std::string& where) {
  const Json json = parse_object(text);
  if (!json.is_object()) return;  // hf_read_config() says what is wrong
  const auto type = json.find("model_type");
  const std::string model_type =
      type != json.end() && type->is_string() ? type->get<std::string>() : "";
  if (model_type != "heed" && !find_architecture(model_type)) throw unknown_type(model_type, where);
}

HfConfig hf_read_config(const std::string& text, const std::string& where,
                        const TensorFile& tensors) {
  Json json = parse_object(text);
  if (!json.is_object()) {
    throw Error(ErrorCode::corrupt_file, where + ": not a JSON object", "check the file's syntax");
  }
  const std::string quantization = read_quantization(json, where);
  json.erase(kQuantization);
  const auto quantized = [&](HfConfig hf) {
    hf.quantization = quantization;
    return hf;
  };
  const auto type = json.find("model_type");
  const std::string model_type =
      type != json.end() && type->is_string() ? type->get<std::string>() : "";
  if (model_type == "heed") return quantized(read_heed(json, where));
  const HfArchitecture* a = find_architecture(model_type);
  if (!a) throw unknown_type(model_type, where);
  return quantized(read_with(
      *a, json, where, [&](const std::string& name) { return tensors.find(name) != nullptr; }));
}

HfConfig hf_equivalent(const ModelConfig& config) {
  check(config, "model");
  for (const HfArchitecture& a : hf_architectures()) {
    const std::optional<Json> json = write_with(a, config);
    if (!json) continue;
    // Accepted only if loading it gives the same model.
    HfConfig hf{config, a.model_type, class_for(a, config)->name};
    const std::vector<std::string> names = hf_tensor_names(hf);
    const HfConfig again = read_with(
        a, *json, a.model_type, [&](const std::string& name) { return contains(names, name); });
    if (without_training(canonical(again.config)) == without_training(canonical(config))) return hf;
  }
  return {config, "heed", "HeedModel"};
}

std::string hf_write_config(const HfConfig& hf, DType dtype) {
  Json json;
  if (const HfArchitecture* a = find_architecture(hf.model_type)) {
    const std::optional<Json> written = write_with(*a, hf.config);
    if (!written) {
      throw Error(ErrorCode::invalid_argument,
                  "the config must be one that " + hf.model_type + " can express",
                  "use hf_equivalent() after changing a config");
    }
    json = *written;
    json["architectures"] = Json::array({hf.architecture});
    const Json others = Json::parse(hf.other_fields);
    for (const auto& [key, value] : others.items()) {
      const bool is_names = key == "id2label" || key == "label2id";
      const bool is_longer =
          value.is_array() && !value.empty() && json.contains(key) && value.front() == json[key];
      if (is_names || is_longer || !json.contains(key)) json[key] = value;
    }
  } else {
    json = {{"model_type", "heed"}, {"architectures", Json::array({"HeedModel"})}};
    json.update(Json::parse(to_json(hf.config)));
    json.update(Json::parse(hf.other_fields));
  }
  json["torch_dtype"] = torch_name(dtype);
  if (!hf.quantization.empty()) json[kQuantization] = quantization_entry(hf.quantization);
  return json.dump(2) + "\n";
}

std::string hf_edit_config(const std::string& text, DType dtype, const std::string& quantization) {
  Json json = parse_object(text);
  // transformers 5 writes dtype, earlier versions torch_dtype.
  json[json.contains("dtype") && !json.contains("torch_dtype") ? "dtype" : "torch_dtype"] =
      torch_name(dtype);
  if (quantization.empty()) {
    json.erase(kQuantization);
  } else {
    json[kQuantization] = quantization_entry(quantization);
  }
  return json.dump(2) + "\n";
}

}  // namespace heed
