// `heed forward`: token ids from a JSON file in, tensors as safetensors out, to compare Heed with
// other implementations.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "heed/error.h"
#include "heed/model_files.h"
#include "model/files/safetensors.h"
#include "model/gradient_step.h"
#include "model/hugging_face/json_values.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

using Ids = std::vector<std::vector<int32_t>>;

// The contents of the JSON file.
struct Inputs {
  Ids sequences;  // or sources
  Ids decoder_inputs, token_types, global_tokens;
  std::vector<int32_t> labels;
  std::vector<float> values;  // the labels of a regression
  bool has_labels = false;
};

Ids read_ids(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  const Error malformed(ErrorCode::invalid_argument,
                        where + ": " + key + " must be a list of lists of whole numbers",
                        std::string("for example \"") + key + "\": [[5, 6, 7], [8, 9]]");
  if (!found->is_array()) throw malformed;
  Ids ids;
  for (const Json& sequence : *found) {
    if (!sequence.is_array()) throw malformed;
    std::vector<int32_t>& row = ids.emplace_back();
    for (const Json& id : sequence) {
      if (!id.is_number_integer() || !std::in_range<int32_t>(id.get<int64_t>())) throw malformed;
      row.push_back(id.get<int32_t>());
    }
  }
  return ids;
}

std::vector<int32_t> end_to_end(const Ids& ids) {
  std::vector<int32_t> all;
  for (const auto& sequence : ids) all.insert(all.end(), sequence.begin(), sequence.end());
  return all;
}

// One number for each sequence, or a list of them.
std::vector<float> read_numbers(const Json& json, const std::string& where) {
  std::vector<float> values;
  const auto add = [&](const Json& number) {
    if (!number.is_number()) {
      throw Error(ErrorCode::invalid_argument,
                  where + ": the labels of a regression must be numbers",
                  "for example \"labels\": [0.5, -1]");
    }
    values.push_back(number.get<float>());
  };
  for (const Json& entry : json) {
    if (!entry.is_array()) add(entry);
    for (size_t i = 0; entry.is_array() && i < entry.size(); ++i) add(entry[i]);
  }
  return values;
}

bool lengths_differ(const Ids& a, const Ids& b) {
  return !std::ranges::equal(a, b, {}, &std::vector<int32_t>::size, &std::vector<int32_t>::size);
}

bool scores_tokens(Head head) {
  return head == Head::language_model || head == Head::masked_lm || head == Head::token_classifier;
}

// Labels as a list for each sequence, end to end.
std::vector<int32_t> read_label_lists(const Json& json, const ModelConfig& config,
                                      const std::string& where, const Inputs& inputs) {
  const Ids labels = read_ids(json, "labels", where);
  const bool two = config.family == Family::encoder_decoder;
  if (scores_tokens(config.head) &&
      lengths_differ(labels, two ? inputs.decoder_inputs : inputs.sequences)) {
    throw Error(
        ErrorCode::invalid_argument,
        where + ": labels must have the lengths of " + (two ? "decoder_inputs" : "sequences"),
        "give one label for each id; -100 marks an id without a label");
  }
  return end_to_end(labels);
}

// The labels as given; without any, the next tokens for a decoder-only language model.
void read_labels(const Json& json, const ModelConfig& config, const std::string& where,
                 Inputs& inputs) {
  if (const auto found = json.find("labels"); found != json.end()) {
    if (config.head == Head::none || config.head == Head::embedding) {
      throw Error(ErrorCode::invalid_argument,
                  where + ": labels must be absent, since the model has no head",
                  "leave labels out; config.json's architectures names the head");
    }
    inputs.has_labels = true;
    if (config.head == Head::regression) {
      inputs.values = read_numbers(*found, where);
      return;
    }
    const bool one_each = found->is_array() && !found->empty() && !found->front().is_array();
    inputs.labels = one_each ? read_ids({{"labels", Json::array({*found})}}, "labels", where).at(0)
                             : read_label_lists(json, config, where, inputs);
  } else if (config.family == Family::decoder_only && config.head == Head::language_model) {
    inputs.has_labels = true;
    for (const auto& sequence : inputs.sequences) {
      if (sequence.empty()) continue;
      inputs.labels.insert(inputs.labels.end(), sequence.begin() + 1, sequence.end());
      inputs.labels.push_back(kIgnoreLabel);
    }
  }
}

// Checked by sequence: an index beyond the end would be a row of the next sequence.
void check_global_tokens(const Inputs& inputs, const ModelConfig& config,
                         const std::string& where) {
  const Ids& places = inputs.global_tokens;
  if (!places.empty() && config.attention != AttentionSpan::longformer) {
    throw Error(ErrorCode::invalid_argument,
                where + ": global_tokens must be absent, since the model has no global attention",
                "only a Longformer has global tokens");
  }
  if (places.size() > inputs.sequences.size()) {
    throw Error(ErrorCode::invalid_argument,
                where + ": global_tokens must have at most one list for each of " +
                    std::to_string(inputs.sequences.size()) + " sequences, got " +
                    std::to_string(places.size()),
                "give one list for each sequence");
  }
  for (size_t s = 0; s < places.size(); ++s) {
    for (const int32_t place : places[s]) {
      const size_t length = inputs.sequences[s].size();
      if (place >= 0 && static_cast<size_t>(place) < length) continue;
      throw Error(ErrorCode::invalid_argument,
                  where + ": a global token of sequence " + std::to_string(s) +
                      " must be below its length " + std::to_string(length) + ", got " +
                      std::to_string(place),
                  "global_tokens are indices into their sequence, from 0");
    }
  }
}

Inputs read_inputs(const std::string& path, const ModelConfig& config) {
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::invalid_argument, path + " is a folder", "--inputs takes a JSON file");
  }
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::not_found, path + ": cannot be opened", "--inputs takes a JSON file");
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const Json json = parse_object(text);
  if (!json.is_object()) {
    throw Error(ErrorCode::invalid_argument, path + ": not a JSON object",
                "for example {\"sequences\": [[5, 6, 7]]}");
  }
  const bool two = config.family == Family::encoder_decoder;
  Inputs inputs;
  inputs.sequences = read_ids(json, two ? "sources" : "sequences", path);
  inputs.decoder_inputs = read_ids(json, "decoder_inputs", path);
  inputs.token_types = read_ids(json, "token_type_ids", path);
  inputs.global_tokens = read_ids(json, "global_tokens", path);
  if (inputs.sequences.empty() ||
      (two && inputs.decoder_inputs.size() != inputs.sequences.size())) {
    throw Error(ErrorCode::invalid_argument,
                path + ": must have " + (two ? "sources and as many decoder_inputs" : "sequences"),
                two ? "{\"sources\": [[5, 6]], \"decoder_inputs\": [[1, 7]]}"
                    : "{\"sequences\": [[5, 6, 7]]}");
  }
  for (const Ids* ids : {&inputs.sequences, two ? &inputs.decoder_inputs : &inputs.sequences}) {
    for (const auto& sequence : *ids) {
      if (!sequence.empty()) continue;
      throw Error(ErrorCode::invalid_argument, path + ": sequences must not be empty",
                  "every sequence needs at least one id");
    }
  }
  if (!inputs.token_types.empty() && lengths_differ(inputs.token_types, inputs.sequences)) {
    throw Error(ErrorCode::invalid_argument,
                path + ": token_type_ids must have the lengths of sequences",
                "give one type for each id");
  }
  check_global_tokens(inputs, config, path);
  read_labels(json, config, path, inputs);
  return inputs;
}

// One forward pass, and the tensors that are written.
class ForwardRun {
 public:
  ForwardRun(const Network& model, const Inputs& inputs, bool attention)
      : model_(model),
        inputs_(inputs),
        attention_(attention),
        source_(inputs.sequences, inputs.token_types),
        target_(inputs.decoder_inputs),
        source_batch_(source_.batch()),
        target_batch_(target_.batch()) {
    if (inputs.global_tokens.empty()) return;
    std::vector<int32_t> rows;
    for (size_t s = 0; s < inputs.global_tokens.size(); ++s) {
      for (const int32_t t : inputs.global_tokens[s]) rows.push_back(source_.offsets[s] + t);
    }
    global_.emplace(source_batch_, rows);
  }

  // Hidden states and heads, in the names of Hugging Face's outputs. Measures when ctx does.
  void outputs(Ctx& ctx) {
    const Transformer& t = model_.transformer();
    const ModelConfig& c = model_.config();
    const Var hidden = run(ctx, attention_);
    keep("last_hidden_state", hidden.value);
    if (c.head == Head::language_model || c.head == Head::masked_lm) {
      keep("logits", t.logits(ctx, hidden).value);
    } else if (c.head == Head::embedding) {
      keep("sentence_embedding", t.sentence(ctx, hidden, source_batch_).value);
    } else if (c.head != Head::none) {
      keep("logits", t.classify(ctx, hidden, source_batch_).value);
    } else if (c.pooler) {
      keep("pooler_output", t.pooled(ctx, hidden, source_batch_).value);
    }
    if (ctx.measuring()) return;
    const bool two = c.family == Family::encoder_decoder;
    for (const AttentionMap& map : encoder_maps_) {
      keep_map(map, two ? "encoder_attention" : "attention", source_, source_);
    }
    for (const AttentionMap& map : decoder_maps_) {
      const bool cross = map.name.ends_with(".cross");
      const char* kind = !two ? "attention" : cross ? "cross_attention" : "decoder_attention";
      keep_map(map, kind, two ? target_ : source_, cross || !two ? source_ : target_);
    }
  }

  // The mean loss of the labels; with a tape also its gradients.
  double loss(Ctx& ctx) {
    const Transformer& t = model_.transformer();
    const Var hidden = run(ctx, false);
    const auto counted =
        std::ranges::count_if(inputs_.labels, [](int32_t label) { return label != kIgnoreLabel; });
    const CrossEntropyOptions options{.gradient_scale =
                                          counted > 0 ? 1 / static_cast<float>(counted) : 0};
    const Head head = model_.config().head;
    const bool by_token = head == Head::language_model || head == Head::masked_lm;
    const Var scores = by_token ? hidden : t.classify(ctx, hidden, source_batch_);
    if (head == Head::regression) return regression_loss(ctx, scores);
    if (static_cast<int64_t>(inputs_.labels.size()) != scores.rows()) {
      throw Error(ErrorCode::invalid_argument,
                  "there must be " + std::to_string(scores.rows()) + " labels, got " +
                      std::to_string(inputs_.labels.size()),
                  "-100 marks a row without a label");
    }
    const LossSum sum = by_token ? t.token_loss(ctx, scores, inputs_.labels, options)
                                 : cross_entropy(ctx, scores, inputs_.labels, options);
    if (ctx.tape) ctx.tape->backward(ctx);
    return sum.count > 0 ? sum.sum / static_cast<double>(sum.count) : 0;
  }

  struct Kept {
    std::vector<int64_t> shape;
    std::vector<float> copy;  // ops that follow may overwrite the original
  };
  const std::map<std::string, Kept>& kept() const { return kept_; }

 private:
  // The mean over all numbers, as transformers takes it.
  double regression_loss(Ctx& ctx, Var scores) {
    if (static_cast<int64_t>(inputs_.values.size()) != scores.value.size()) {
      throw Error(ErrorCode::invalid_argument,
                  "there must be " + std::to_string(scores.value.size()) + " labels, got " +
                      std::to_string(inputs_.values.size()),
                  "give a number for each output");
    }
    const ConstMat references(inputs_.values.data(), scores.rows(), scores.cols());
    const LossSum sum =
        squared_error(ctx, scores, references, 1 / static_cast<float>(scores.rows()));
    if (ctx.tape) ctx.tape->backward(ctx);
    return sum.sum / static_cast<double>(scores.rows());
  }

  Var run(Ctx& ctx, bool maps) {
    encoder_maps_.clear(), decoder_maps_.clear();
    Var memory;
    const Var hidden =
        model_.transformer().hidden(ctx, {.source = source_batch_,
                                          .target = target_batch_,
                                          .global_tokens = global_ ? &*global_ : nullptr,
                                          .encoder_maps = maps ? &encoder_maps_ : nullptr,
                                          .decoder_maps = maps ? &decoder_maps_ : nullptr,
                                          .encoder_hidden = &memory});
    if (model_.config().has_both()) keep("encoder_last_hidden_state", memory.value);
    return hidden;
  }

  void keep(const std::string& name, const Mat& m) {
    Kept& kept = kept_[name];
    kept.shape = {m.rows, m.cols};
    if (m.data) kept.copy.assign(m.data, m.data + m.size());
  }

  // Splits a layer's map by sequence: "encoder.0.self" → "encoder_attention.layer0.seq2".
  void keep_map(const AttentionMap& map, const std::string& kind, const PackedBatch& queries,
                const PackedBatch& keys) {
    const std::string layer = map.name.substr(map.name.find('.') + 1);
    const std::string prefix = kind + ".layer" + layer.substr(0, layer.find('.')) + ".seq";
    int64_t pairs = 0;
    for (size_t s = 0; s + 1 < queries.offsets.size(); ++s) {
      pairs += int64_t{queries.offsets[s + 1] - queries.offsets[s]} *
               (keys.offsets[s + 1] - keys.offsets[s]);
    }
    const int64_t heads = pairs > 0 ? map.probabilities.size() / pairs : 0;
    const float* at = map.probabilities.data;
    for (size_t s = 0; s + 1 < queries.offsets.size(); ++s) {
      const int64_t rows = queries.offsets[s + 1] - queries.offsets[s];
      const int64_t cols = keys.offsets[s + 1] - keys.offsets[s];
      Kept& kept = kept_[prefix + std::to_string(s)];
      kept.shape = {heads, rows, cols};
      kept.copy.assign(at, at + heads * rows * cols);
      at += heads * rows * cols;
    }
  }

  const Network& model_;
  const Inputs& inputs_;
  bool attention_;
  PackedBatch source_, target_;
  Batch source_batch_, target_batch_;
  std::optional<GlobalTokens> global_;
  AttentionMaps encoder_maps_, decoder_maps_;
  std::map<std::string, Kept> kept_;
};

// Plans the memory of `step` with a measuring run, then runs it.
template <class Step>
auto run_planned(ThreadPool& pool, Tape* tape, const Step& step) {
  Arena plan = Arena::measuring();
  Ctx measuring{pool, plan, tape};
  step(measuring);
  Arena arena(plan.peak_bytes());
  Ctx ctx{pool, arena, tape};
  return step(ctx);
}

}  // namespace

ForwardResult run_forward(const std::string& folder, const ForwardOptions& options) {
  // Gradients are of floats only.
  const bool trains = !options.gradients.empty();
  Network model = Network::load(
      folder, {.dropout = false, .form = trains ? WeightForm::trainable : WeightForm::stored});
  const Inputs inputs = read_inputs(options.inputs, model.config());
  if (!options.gradients.empty() && !inputs.has_labels) {
    throw Error(ErrorCode::invalid_argument,
                options.inputs + ": labels must be given for gradients",
                "add \"labels\" to the inputs");
  }
  if (!options.gradients.empty()) model.add_gradients();
  ThreadPool pool(options.threads);
  ForwardRun run(model, inputs, options.attention);
  ForwardResult result;
  run_planned(pool, nullptr, [&](Ctx& ctx) {
    run.outputs(ctx);
    return 0;
  });
  std::vector<TensorView> tensors;
  for (const auto& [name, kept] : run.kept()) {
    tensors.push_back({name, DType::f32, kept.shape, std::as_bytes(std::span(kept.copy))});
    result.tensors.push_back({name, kept.shape});
  }
  if (!options.out.empty()) write_safetensors(options.out, tensors);
  if (!inputs.has_labels) return result;
  Tape tape;
  Tape* used = options.gradients.empty() ? nullptr : &tape;
  GradientStep gradients(model.parameters());
  result.loss = run_planned(pool, used, [&](Ctx& ctx) { return run.loss(ctx); });
  if (used) {
    gradients.finish();
    write_safetensors(options.gradients,
                      hf_gradients(model.hugging_face(), model.parameters()).views);
  }
  return result;
}

}  // namespace heed
