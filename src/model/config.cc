#include "model/config.h"

#include <algorithm>

#include "base/text/suggest.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"

namespace heed {
namespace {

// Collects problems, one sentence each.
class Problems {
 public:
  void unless(bool valid, std::string problem) {
    if (!valid) list_.push_back(std::move(problem));
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

std::string number(double x) { return Json(x).dump(); }

void check_sizes(const ModelConfig& c, Problems& p) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto below_most = [&](const char* name, int64_t value) {
    p.unless(value < kMost, std::string(name) + " must be below " + std::to_string(kMost) +
                                ", got " + std::to_string(value));
  };
  const auto positive = [&](const char* name, int64_t value) {
    p.unless(value > 0, std::string(name) + " must be positive, got " + std::to_string(value));
    below_most(name, value);
  };
  positive("vocabulary", c.vocabulary);
  positive("width", c.width);
  positive("heads", c.heads);
  positive("ffn", c.ffn);
  positive("max_positions", c.max_positions);
  const auto not_negative = [&](const char* name, int64_t value) {
    p.unless(value >= 0, std::string(name) + " must not be negative, got " + std::to_string(value));
    below_most(name, value);
  };
  not_negative("target_vocabulary", c.target_vocabulary);
  not_negative("decoder_heads", c.decoder_heads);
  not_negative("kv_heads", c.kv_heads);
  not_negative("head_dim", c.head_dim);
  not_negative("decoder_ffn", c.decoder_ffn);
  not_negative("position_offset", c.position_offset);
  not_negative("token_types", c.token_types);
  not_negative("labels", c.labels);
  if (c.family != Family::decoder_only) positive("encoder_layers", c.encoder_layers);
  if (c.family != Family::encoder_only) positive("decoder_layers", c.decoder_layers);
  for (const auto& [name, layers] :
       {std::pair{"encoder_layers", c.encoder_layers}, {"decoder_layers", c.decoder_layers}}) {
    p.unless(layers <= kMostLayers, std::string(name) + " must be at most " +
                                        std::to_string(kMostLayers) + ", got " +
                                        std::to_string(layers));
  }
  for (const int heads : {c.heads, c.decoder_heads}) {
    if (heads <= 0) continue;
    p.unless(c.head_dim > 0 || c.width % heads == 0, "width must be a multiple of heads, got " +
                                                         std::to_string(c.width) + " and " +
                                                         std::to_string(heads) + "; set head_dim");
    p.unless(c.kv_heads <= 0 || heads % c.kv_heads == 0,
             "heads must be a multiple of kv_heads, got " + std::to_string(heads) + " and " +
                 std::to_string(c.kv_heads));
  }
}

void check_positions(const ModelConfig& c, Problems& p) {
  if (c.position == Position::sinusoidal) {
    p.unless(c.width % 2 == 0, "width must be even with sinusoidal positions");
    // The table is computed, so no file size bounds these numbers.
    constexpr int64_t kMostSinusoids = int64_t{1} << 28;  // 1 GB
    const int64_t most = kMostSinusoids / std::max<int64_t>(c.width, 1) - c.position_offset;
    p.unless(c.max_positions <= most, "max_positions must be at most " + std::to_string(most) +
                                          ", so that the table of sinusoids fits into 1 GB, got " +
                                          std::to_string(c.max_positions));
  }
  if (c.position == Position::rope) {
    p.unless(c.rope_base > 0, "rope_base must be positive");
    p.unless(c.rope_fraction > 0 && c.rope_fraction <= 1,
             "rope_fraction must be in (0, 1], got " + number(c.rope_fraction));
    p.unless(c.rope_factor > 0, "rope_factor must be positive");
    if (needs_original_positions(c.rope_scaling)) {
      p.unless(c.rope_original_positions > 0,
               "rope_original_positions must be positive with rope_scaling " +
                   std::string(name_of(c.rope_scaling)));
    }
    if (c.rope_scaling == RopeScaling::llama3) {
      p.unless(c.rope_high_frequency_factor > c.rope_low_frequency_factor,
               "rope_high_frequency_factor must exceed rope_low_frequency_factor");
    }
  }
  if (c.position == Position::t5_bias) {
    p.unless(c.t5_buckets >= 4, "t5_buckets must be at least 4");
    p.unless(c.t5_max_distance > c.t5_buckets / 2, "t5_max_distance must exceed t5_buckets / 2");
  }
  p.unless(c.position_offset == 0 || c.position == Position::learned ||
               c.position == Position::sinusoidal,
           "position_offset must be 0 unless position is learned or sinusoidal");
}

void check_attention(const ModelConfig& c, Problems& p) {
  const bool windows =
      std::any_of(c.windows.begin(), c.windows.end(), [](auto w) { return w > 0; });
  p.unless(std::none_of(c.windows.begin(), c.windows.end(), [](auto w) { return w < 0; }),
           "windows must not be negative");
  p.unless(c.attention != AttentionSpan::full || c.windows.empty(),
           "windows must be empty when attention is full");
  p.unless(c.attention == AttentionSpan::full || windows,
           "windows must have a window when attention is " + std::string(name_of(c.attention)));
  p.unless(c.attention != AttentionSpan::longformer || c.family == Family::encoder_only,
           "family must be encoder_only when attention is longformer");
  p.unless(c.attention_scale >= 0, "attention_scale must not be negative");
  p.unless(c.attention_soft_cap >= 0, "attention_soft_cap must not be negative");
  p.unless(c.residual == Residual::sequential ||
               (c.norm_place == NormPlace::pre && c.family != Family::encoder_decoder),
           "residual must be sequential unless norm_place is pre and there is no cross-attention");
}

void check_head(const ModelConfig& c, Problems& p) {
  const bool labelled =
      c.head == Head::classifier || c.head == Head::token_classifier || c.head == Head::regression;
  p.unless(!labelled || c.labels > 0,
           "labels must be positive when head is " + std::string(name_of(c.head)));
  p.unless(c.head != Head::masked_lm || c.family == Family::encoder_only,
           "family must be encoder_only when head is masked_lm");
  p.unless(c.head != Head::language_model || c.family != Family::encoder_only,
           "family must have a decoder when head is language_model");
  const bool two = c.family == Family::encoder_decoder;
  p.unless(two || c.target_vocabulary == 0,
           "target_vocabulary must be 0 unless family is encoder_decoder");
  p.unless(two || c.tying != Tying::source_target,
           "family must be encoder_decoder when tying is source_target");
  p.unless(c.target_vocabulary == 0 || c.target_vocabulary == c.vocabulary ||
               c.tying == Tying::none || c.tying == Tying::target_output,
           "target_vocabulary must equal vocabulary when source and target share a matrix");
  // The cap is the output layer's tanh activation, which is applied after the bias.
  p.unless(c.logits_soft_cap == 0 || !c.output_bias,
           "logits_soft_cap must be 0 when there is an output_bias");
  p.unless(c.logits_soft_cap >= 0, "logits_soft_cap must not be negative");
  for (const auto& [name, value] : {std::pair{"dropout", c.dropout},
                                    {"attention_dropout", c.attention_dropout},
                                    {"activation_dropout", c.activation_dropout},
                                    {"embedding_dropout", c.embedding_dropout}}) {
    p.unless(value >= 0 && value < 1,
             std::string(name) + " must be in [0, 1), got " + number(value));
  }
  p.unless(c.norm_eps > 0, "norm_eps must be positive");
  p.unless(c.norm_offset == 0 || c.norm == NormKind::rms_norm,
           "norm_offset must be 0 unless norm is rms_norm");
}

}  // namespace

StackConfig ModelConfig::stack(Side side) const {
  const bool decoder = side == Side::decoder;
  StackConfig stack;
  stack.name = decoder ? "decoder" : "encoder";
  stack.layers = decoder ? decoder_layers : encoder_layers;
  stack.heads = decoder && decoder_heads > 0 ? decoder_heads : heads;
  stack.kv_heads = kv_heads > 0 ? kv_heads : stack.heads;
  stack.head_dim = head_dim;
  if (head_dim == 0 && stack.heads > 0) stack.head_dim = static_cast<int>(width / stack.heads);
  stack.ffn = decoder && decoder_ffn > 0 ? decoder_ffn : ffn;
  stack.causal = decoder;
  stack.cross_attention = decoder && has_encoder();
  if (attention != AttentionSpan::full) stack.windows = windows;
  return stack;
}

std::vector<std::string> validate(const ModelConfig& c) {
  Problems problems;
  check_sizes(c, problems);
  check_positions(c, problems);
  check_attention(c, problems);
  check_head(c, problems);
  return problems.take();
}

void check(const ModelConfig& config, const std::string& where) {
  const auto problems = validate(config);
  if (problems.empty()) return;
  std::string message = where + ": invalid model configuration:";
  for (const std::string& problem : problems) message += " " + problem + ";";
  message.pop_back();
  throw Error(ErrorCode::invalid_argument, message, "correct the named fields");
}

std::string to_json(const ModelConfig& config) {
  Json json = Json::object();
  describe(config, [&](const char* name, const auto& field, const char*) {
    json[name] = value_json(field);
  });
  return json.dump(2);
}

ModelConfig config_from_json(const std::string& text, const ModelConfig& defaults,
                             const std::string& where) {
  const Json json = parse_object(text);
  if (!json.is_object()) {
    throw Error(ErrorCode::corrupt_file, where + ": not a JSON object", "check the file's syntax");
  }
  ModelConfig config = defaults;
  std::vector<std::string> names, problems;
  describe(config, [&](const char* name, auto& field, const char*) {
    names.emplace_back(name);
    const auto found = json.find(name);
    if (found == json.end()) return;
    const std::string expected = read_value(*found, field);
    if (!expected.empty()) {
      problems.push_back(std::string(name) + " must be " + expected + ", got " + found->dump());
    }
  });
  for (const auto& [key, value] : json.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::optional<std::string> near = nearest(key, names);
    problems.push_back("unknown field " + key + (near ? " (did you mean " + *near + "?)" : ""));
  }
  if (!problems.empty()) {
    std::string message = where + ":";
    for (const std::string& problem : problems) message += " " + problem + ";";
    message.pop_back();
    throw Error(ErrorCode::invalid_argument, message, "`heed info --help` lists the fields");
  }
  return config;
}

}  // namespace heed
