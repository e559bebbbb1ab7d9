// The weights of a model: declared once, and owned in contiguous buffers.
//
// declare() is the only list of weights; allocation, initialisation, saving, loading and counting use
// it. Linear matrices are [out, in]. Projections that share an input are one matrix, concatenated by
// rows: q, k and v; gate and up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "model/config.h"
#include "ops/gradient_pool.h"
#include "ops/weight.h"

namespace heed {

// Initialisation of a weight.
enum class Init {
  zeros,
  ones,
  normal,          // mean 0, a standard deviation
  xavier_uniform,  // ±deviation · √(6 / (in + out)), of the matrix or of each part of it
};

struct ParameterSpec {
  std::string name;  // "encoder.0.self.qkv.weight"
  int64_t rows = 0;
  int64_t cols = 0;
  Init init = Init::zeros;
  float deviation = 0;              // of Init::normal; a factor for Init::xavier_uniform
  std::vector<int64_t> parts{};     // rows of each part of a stacked matrix; empty: one part
  std::vector<float> deviations{};  // of each part, where they differ

  int64_t size() const { return rows * cols; }
  // A table of attention biases: looked up, not multiplied with rows.
  bool is_relative_bias() const;
};

std::vector<ParameterSpec> declare(const ModelConfig& config);

using kernels::PackedWeight;
using kernels::WeightType;

// Whether a weight may be packed (kernels/matmul/packed_weight.h): the matrices of linear layers and the
// token embeddings, which are almost all of a model.
bool can_be_packed(const ParameterSpec& spec);

// The type of each packed weight; the others are f32.
using WeightTypes = std::map<std::string, WeightType, std::less<>>;
// Every weight that can be packed, of one type.
WeightTypes packed_types(const ModelConfig& config, WeightType type);
int64_t parameter_count(const ModelConfig& config);

// Where the gradients of a step are: all of them in one buffer until the next step, or each only
// from its first contribution until it has been used.
enum class GradientMemory { full, pooled };

class Parameters {
 public:
  // Values only; training adds gradients.
  explicit Parameters(const ModelConfig& config);
  // The same with some matrices packed, all zero: for inference only.
  Parameters(const ModelConfig& config, const WeightTypes& types);
  // Names and shapes without values: only for measuring runs of a model of any size.
  static Parameters shapes_only(const ModelConfig& config);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;
  Parameters(Parameters&&) = default;
  Parameters& operator=(Parameters&&) = default;

  void initialise(uint64_t seed);
  // May be called again, to have them the other way: slots stay where they are.
  void add_gradients(GradientMemory memory = GradientMemory::full);

  std::span<const ParameterSpec> specs() const { return specs_; }
  // Empty when the model has no such weight.
  Weight weight(std::string_view name) const;
  WeightType type(std::string_view name) const;
  bool is_packed() const { return packed_memory_.has_value(); }  // any of them
  bool is_packed(std::string_view name) const;
  PackedWeight packed(std::string_view name) const;
  // A copy of any weight as f32; a packed one is dequantized.
  std::vector<float> floats(std::string_view name) const;
  int64_t bytes() const;  // of all weights, without gradients

  // Of weights that are not packed.
  std::span<float> values(std::string_view name);
  std::span<const float> values(std::string_view name) const;
  std::span<const float> gradient(std::string_view name) const;

  std::span<float> all_values() { return values_; }
  std::span<const float> all_values() const { return values_; }
  std::span<float> all_gradients() { return gradients_; }         // empty when they are pooled
  std::span<WeightGradient> gradients() { return slots_; }        // one for each of specs()
  GradientPool* gradient_pool() { return gradient_pool_.get(); }  // null when gradients are full
  GradientMemory gradient_memory() const {
    return gradient_pool_ ? GradientMemory::pooled : GradientMemory::full;
  }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }

 private:
  enum class Storage { numbers, none };
  Parameters(const ModelConfig& config, Storage storage, const WeightTypes& types = {});
  size_t index(std::string_view name) const;

  std::vector<ParameterSpec> specs_;
  std::vector<int64_t> offsets_;  // of each spec in the buffers
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<float> values_, gradients_;
  std::vector<PackedWeight> packed_;  // one for each spec; empty ones for plain floats
  std::optional<Arena> packed_memory_;
  mutable std::vector<WeightGradient> slots_;
  std::unique_ptr<GradientPool> gradient_pool_;  // slots point at it, also when Parameters move
};

}  // namespace heed
