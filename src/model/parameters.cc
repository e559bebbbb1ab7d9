#include "model/parameters.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>

#include "base/check.h"
#include "base/philox.h"
#include "base/process_memory.h"
#include "base/text/number_text.h"
#include "heed/error.h"

namespace heed {
namespace {

// Standard deviation of BERT's and GPT-2's matrices.
constexpr float kSpread = 0.02f;

// Lists a config's weights in the order of a forward pass.
class Declaration {
 public:
  explicit Declaration(const ModelConfig& config)
      : c_(config),
        init_(config.initialisation == Initialisation::by_family ? by_family(config.family)
                                                                 : config.initialisation) {}

  std::vector<ParameterSpec> list() && {
    embeddings();
    if (c_.has_encoder()) stack(c_.stack(Side::encoder));
    if (c_.has_decoder()) stack(c_.stack(Side::decoder));
    head();
    return std::move(specs_);
  }

 private:
  static Initialisation by_family(Family family) {
    switch (family) {
      case Family::encoder_decoder:
        return Initialisation::xavier;
      case Family::encoder_only:
        return Initialisation::normal;
      case Family::decoder_only:
        break;
    }
    return Initialisation::gpt2;
  }

  static float one_over_root(int64_t n) { return 1 / std::sqrt(static_cast<float>(n)); }

  void matrix(const std::string& name, int64_t out, int64_t in, std::vector<int64_t> parts = {},
              float shrink = 1) {
    ParameterSpec spec{name, out, in, Init::normal, kSpread * shrink, std::move(parts)};
    if (init_ == Initialisation::xavier) spec.init = Init::xavier_uniform, spec.deviation = shrink;
    if (init_ == Initialisation::t5) spec.deviation = one_over_root(in);
    specs_.push_back(std::move(spec));
  }
  void vector(const std::string& name, int64_t size, Init init = Init::zeros) {
    specs_.push_back({name, 1, size, init});
  }
  void linear(const std::string& name, int64_t out, int64_t in, bool bias,
              std::vector<int64_t> parts = {}, float shrink = 1) {
    matrix(name + ".weight", out, in, std::move(parts), shrink);
    if (bias) vector(name + ".bias", out);
  }
  void norm(const std::string& name) {
    vector(name + ".gamma", c_.width, c_.norm_offset == 0 ? Init::ones : Init::zeros);
    if (c_.norm == NormKind::layer_norm && c_.norm_bias) vector(name + ".beta", c_.width);
  }
  void table(const std::string& name, int64_t rows) {
    // With √width at the input, 1/√width here makes embeddings of unit variance.
    const bool scaled = c_.embedding_scale == EmbeddingScale::sqrt_width;
    float deviation = scaled ? one_over_root(c_.width) : kSpread;
    if (init_ == Initialisation::t5) deviation = 1;
    specs_.push_back({name, rows, c_.width, Init::normal, deviation});
  }
  // T5 does not divide scores by √head_dim; its query matrix is initialized that much smaller.
  void shrink_queries(int head_dim) {
    if (init_ != Initialisation::t5) return;
    const auto found = std::find_if(specs_.rbegin(), specs_.rend(), [](const ParameterSpec& spec) {
      return spec.name.ends_with(".weight");
    });
    const float shrunk = found->deviation * one_over_root(head_dim);
    if (found->parts.empty()) {
      found->deviation = shrunk;
    } else {
      found->deviations.assign(found->parts.size(), found->deviation);
      found->deviations.front() = shrunk;
    }
  }

  void embeddings() {
    const bool two = c_.family == Family::encoder_decoder;
    table("embedding.tokens", c_.vocabulary);
    const bool shared = c_.tying == Tying::all || c_.tying == Tying::source_target;
    if (two && !shared) table("target.tokens", c_.output_vocabulary());
    for (const std::string side : {"embedding", "target"}) {
      if (side == "target" && !two) continue;
      if (c_.position == Position::learned) {
        specs_.push_back({side + ".positions", c_.max_positions + c_.position_offset, c_.width,
                          Init::normal, kSpread});
      }
      if (c_.embedding_norm) norm(side + ".norm");
    }
    if (c_.token_types > 0) {
      specs_.push_back({"embedding.token_types", c_.token_types, c_.width, Init::normal, kSpread});
    }
  }

  void attention(const std::string& name, const StackConfig& s, bool cross, float shrink) {
    const int64_t q = s.query_width(), kv = s.key_width();
    const bool bias =
        c_.attention_bias == AttentionBias::all || c_.attention_bias == AttentionBias::qkv;
    // fairseq and PyTorch initialize q, k and v smaller than Xavier by √2. Otherwise, with much
    // dropout, cross-attention is slow to learn.
    const float gain = init_ == Initialisation::xavier ? std::sqrt(0.5f) : 1;
    if (cross) {
      linear(name + ".q", q, c_.width, bias, {}, gain);
      shrink_queries(s.head_dim);
      linear(name + ".kv", 2 * kv, c_.width, bias, {kv, kv}, gain);
    } else {
      linear(name + ".qkv", q + 2 * kv, c_.width, bias, {q, kv, kv}, gain);
      shrink_queries(s.head_dim);
    }
    const bool out_bias =
        c_.attention_bias == AttentionBias::all || c_.attention_bias == AttentionBias::out;
    linear(name + ".out", c_.width, q, out_bias, {}, shrink);
  }

  void sublayer_norms(const std::string& name) {
    norm(name + ".norm");
    if (c_.norm_place == NormPlace::both) norm(name + ".post_norm");
  }

  void stack(const StackConfig& s) {
    const std::string name = s.name;
    // GPT-2: projections into the residual stream shrink with the number of additions.
    const float shrink = init_ == Initialisation::gpt2 ? one_over_root(2 * int64_t{s.layers}) : 1;
    const RelativeBias bias = c_.relative_bias(s.causal);
    if (bias.weight_rows() > 0) {
      const float deviation = init_ == Initialisation::t5 ? one_over_root(c_.width) : kSpread;
      specs_.push_back({name + "." + std::string(info(bias.kind).weight), bias.weight_rows(),
                        s.heads, Init::normal, deviation});
    }
    for (int i = 0; i < s.layers; ++i) {
      const std::string layer = name + "." + std::to_string(i);
      sublayer_norms(layer + ".self");
      attention(layer + ".self", s, false, shrink);
      if (c_.attention == AttentionSpan::longformer) {
        const int64_t q = s.query_width(), kv = s.key_width();
        linear(layer + ".global.qkv", q + 2 * kv, c_.width, true, {q, kv, kv});
      }
      if (s.cross_attention) {
        sublayer_norms(layer + ".cross");
        attention(layer + ".cross", s, true, shrink);
      }
      sublayer_norms(layer + ".ffn");
      if (c_.ffn_kind == FfnKind::gated) {
        linear(layer + ".ffn.in", 2 * s.ffn, c_.width, c_.ffn_bias, {s.ffn, s.ffn});
      } else {
        linear(layer + ".ffn.in", s.ffn, c_.width, c_.ffn_bias);
      }
      linear(layer + ".ffn.out", c_.width, s.ffn, c_.ffn_bias, {}, shrink);
    }
    if (c_.final_norm) norm(name + ".norm");
  }

  void head() {
    if (c_.pooler) linear("pooler", c_.width, c_.width, true);
    switch (c_.head) {
      case Head::none:
      case Head::embedding:
        return;
      case Head::masked_lm:
        linear("head.dense", c_.width, c_.width, true);
        norm("head.norm");
        if (c_.pooler) linear("next_sentence", 2, c_.width, true);
        [[fallthrough]];
      case Head::language_model:
        if (c_.tying == Tying::none || c_.tying == Tying::source_target) {
          matrix("output.weight", c_.output_vocabulary(), c_.width);
          if (init_ == Initialisation::t5) specs_.back().deviation = 1;
        }
        if (c_.output_bias) vector("output.bias", c_.output_vocabulary());
        return;
      case Head::classifier:
      case Head::regression:
        if (c_.head_activation != Activation::none) linear("head.dense", c_.width, c_.width, true);
        [[fallthrough]];
      case Head::token_classifier:
        linear("head.output", c_.labels, c_.width, true);
        return;
    }
  }

  const ModelConfig& c_;
  const Initialisation init_;
  std::vector<ParameterSpec> specs_;
};

// FNV-1a. Not xxHash: the value selects the random stream of a weight's initialization, so another hash
// would change the initial weights of every seed.
uint32_t stream_of(const std::string& name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// Every weight starts on a cache line.
constexpr int64_t kAlignFloats = 16;

size_t packed_size(const PackedWeight& w) {
  const auto bytes = static_cast<size_t>(kernels::packed_bytes(w.type, w.n, w.k));
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace

bool ParameterSpec::is_relative_bias() const {
  return std::ranges::any_of(kRelativeBiases, [&](const RelativeBiasInfo& bias) {
    return !bias.weight.empty() && name.ends_with("." + std::string(bias.weight));
  });
}

bool can_be_packed(const ParameterSpec& spec) {
  return spec.rows > 1 && (spec.name.ends_with(".weight") || spec.name.ends_with(".tokens"));
}

WeightTypes packed_types(const ModelConfig& config, WeightType type) {
  WeightTypes types;
  for (const ParameterSpec& spec : declare(config)) {
    if (can_be_packed(spec)) types[spec.name] = type;
  }
  return types;
}

std::vector<ParameterSpec> declare(const ModelConfig& config) { return Declaration(config).list(); }

int64_t parameter_count(const ModelConfig& config) {
  int64_t count = 0;
  for (const ParameterSpec& spec : declare(config)) count += spec.size();
  return count;
}

Parameters::Parameters(const ModelConfig& config) : Parameters(config, Storage::numbers) {}

Parameters::Parameters(const ModelConfig& config, const WeightTypes& types)
    : Parameters(config, Storage::numbers, types) {}

Parameters Parameters::shapes_only(const ModelConfig& config) {
  Parameters shapes(config, Storage::none);
  for (const ParameterSpec& spec : shapes.specs_) {
    shapes.slots_.push_back({Mat(nullptr, spec.rows, spec.cols)});
  }
  return shapes;
}

namespace {

[[noreturn]] void throw_too_large(int64_t bytes) {
  throw Error(ErrorCode::out_of_memory,
              "the weights need " + megabytes(bytes) +
                  " of memory, of which this process may have " + megabytes(memory_limit_bytes()),
              "use a smaller model, or a machine with more memory");
}

}  // namespace

Parameters::Parameters(const ModelConfig& config, Storage storage, const WeightTypes& types)
    : specs_(declare(config)), packed_(specs_.size()) {
  int64_t at = 0;
  size_t packed_total = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    offsets_.push_back(at);
    const auto found = types.find(specs_[i].name);
    if (found != types.end()) {
      HEED_CHECK(can_be_packed(specs_[i]), "parameters: must not be packed: " + specs_[i].name);
      packed_[i] = {found->second, specs_[i].rows, specs_[i].cols};
      packed_total += packed_size(packed_[i]);
    } else {
      at += (specs_[i].size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
    }
    const bool fresh = by_name_.emplace(specs_[i].name, i).second;
    HEED_CHECK(fresh, "parameters: must be declared once: " + specs_[i].name);
  }
  if (storage == Storage::numbers) {
    try {
      values_.resize(static_cast<size_t>(at));
    } catch (const std::bad_alloc&) {
      throw_too_large(at * int64_t{sizeof(float)});
    } catch (const std::length_error&) {
      throw_too_large(at * int64_t{sizeof(float)});
    }
  }
  if (packed_total == 0) return;
  packed_memory_.emplace(packed_total);
  for (PackedWeight& w : packed_) {
    // Zero, as it comes from the system.
    if (w.n > 0) w.memory = packed_memory_->allocate<std::byte>(packed_size(w));
  }
}

namespace {

// Calls write(row, rows, values) with a weight's initial values, some rows at a time.
template <class Write>
void each_initial_rows(const ParameterSpec& spec, uint64_t seed, const Write& write) {
  constexpr int64_t kPieceFloats = 1 << 18;
  // A separate random stream: initial values do not depend on the other weights.
  Random random({.seed = seed, .site = stream_of(spec.name)});
  const std::vector<int64_t> whole{spec.rows};
  const int64_t piece = std::max<int64_t>(kPieceFloats / std::max<int64_t>(spec.cols, 1), 1);
  std::vector<float> values;
  int64_t row = 0;
  size_t part = 0;
  for (const int64_t rows : spec.parts.empty() ? whole : spec.parts) {
    const float deviation = spec.deviations.empty() ? spec.deviation : spec.deviations[part++];
    const float bound = deviation * std::sqrt(6.0f / static_cast<float>(rows + spec.cols));
    for (const int64_t end = row + rows; row < end;) {
      const int64_t count = std::min(piece, end - row);
      values.resize(static_cast<size_t>(count * spec.cols));
      for (float& value : values) {
        switch (spec.init) {
          case Init::zeros:
            value = 0;
            break;
          case Init::ones:
            value = 1;
            break;
          case Init::normal:
            value = deviation * random.normal();
            break;
          case Init::xavier_uniform:
            value = bound * (2 * random.uniform() - 1);
            break;
        }
      }
      write(row, count, values);
      row += count;
    }
  }
}

void narrow_and_pack(const PackedWeight& to, int64_t first, const kernels::FloatRows& rows) {
  std::vector<std::byte> numbers(
      static_cast<size_t>(rows.rows * kernels::quantized_row_bytes(to.type, rows.k)));
  std::vector<float> scales(
      static_cast<size_t>(rows.rows * kernels::quantized_row_scales(to.type, rows.k)));
  kernels::quantize_rows(to.type, rows, numbers.data(), scales.data());
  kernels::pack_rows(to, first, rows.rows, numbers.data(), scales.data());
}

}  // namespace

void Parameters::initialise(uint64_t seed) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const ParameterSpec& spec = specs_[i];
    each_initial_rows(spec, seed, [&](int64_t row, int64_t rows, const std::vector<float>& values) {
      if (packed_[i]) {
        narrow_and_pack(packed_[i], row, {values.data(), rows, spec.cols});
      } else {
        std::copy(values.begin(), values.end(), values_.data() + offsets_[i] + row * spec.cols);
      }
    });
  }
}

void Parameters::add_gradients(GradientMemory memory) {
  if (is_packed()) {
    throw Error(ErrorCode::unsupported, "packed weights cannot be trained",
                "train the model that was quantized, and quantize it again");
  }
  const bool kept = memory == GradientMemory::full;
  gradients_ = std::vector<float>(kept ? values_.size() : 0);
  gradient_pool_ = kept ? nullptr : std::make_unique<GradientPool>();
  slots_.resize(specs_.size());
  for (size_t i = 0; i < specs_.size(); ++i) {
    float* const numbers = kept ? gradients_.data() + offsets_[i] : nullptr;
    slots_[i] = {.value = Mat(numbers, specs_[i].rows, specs_[i].cols),
                 .pool = gradient_pool_.get()};
  }
}

size_t Parameters::index(std::string_view name) const {
  const auto found = by_name_.find(name);
  HEED_CHECK(found != by_name_.end(), "parameters: no weight " + std::string(name));
  return found->second;
}

Weight Parameters::weight(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return {};
  const size_t i = found->second;
  if (packed_[i]) return {ConstMat(nullptr, specs_[i].rows, specs_[i].cols), nullptr, packed_[i]};
  const float* values = values_.empty() ? nullptr : values_.data() + offsets_[i];
  return {ConstMat(values, specs_[i].rows, specs_[i].cols), slots_.empty() ? nullptr : &slots_[i]};
}

WeightType Parameters::type(std::string_view name) const { return packed_[index(name)].type; }

bool Parameters::is_packed(std::string_view name) const {
  return static_cast<bool>(packed_[index(name)]);
}

PackedWeight Parameters::packed(std::string_view name) const {
  const PackedWeight& w = packed_[index(name)];
  HEED_CHECK(w, std::string(name) + " is not packed");
  return w;
}

std::vector<float> Parameters::floats(std::string_view name) const {
  const PackedWeight& w = packed_[index(name)];
  if (!w) {
    const std::span<const float> from = values(name);
    return {from.begin(), from.end()};
  }
  std::vector<float> numbers(static_cast<size_t>(w.n * w.k));
  for (int64_t row = 0; row < w.n; ++row)
    kernels::dequantize_packed_row(w, row, numbers.data() + row * w.k);
  return numbers;
}

int64_t Parameters::bytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    const PackedWeight& w = packed_[i];
    bytes += w ? kernels::packed_bytes(w.type, w.n, w.k)
               : specs_[i].size() * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

std::span<float> Parameters::values(std::string_view name) {
  const size_t i = index(name);
  HEED_CHECK(!packed_[i], std::string(name) + " is packed");
  return {values_.data() + offsets_[i], static_cast<size_t>(specs_[i].size())};
}
std::span<const float> Parameters::values(std::string_view name) const {
  const size_t i = index(name);
  HEED_CHECK(!packed_[i], std::string(name) + " is packed");
  return {values_.data() + offsets_[i], static_cast<size_t>(specs_[i].size())};
}
std::span<const float> Parameters::gradient(std::string_view name) const {
  const size_t i = index(name);
  HEED_CHECK(!gradient_pool_, "gradient: GradientMemory must be full, got pooled");
  return {gradients_.data() + offsets_[i], static_cast<size_t>(specs_[i].size())};
}

}  // namespace heed
