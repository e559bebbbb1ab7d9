// Activations and their gradients, alone, after a bias, and as the gate of a feed-forward layer.
//
// A new activation is one enumerator and one line of kActivations here, one functor in
// activation-inl.h, and one line of the reference in activation_testing.h. Config files, Hugging
// Face import and export and all tests iterate kActivations.
//
// Each element is computed by itself: cutting an array anywhere gives the same bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace heed::kernels {

enum class Activation { none, relu, relu2, gelu, gelu_tanh, silu, tanh };

struct ActivationInfo {
  Activation activation;
  std::string_view name;  // as in config files
  // Whether the gradient is computed from the input, or from the output, which is kept anyway.
  bool backward_needs_input;
  // Names in Hugging Face's config.json; the first is written. Empty: cannot be imported.
  std::string_view hugging_face[3] = {};
};

// In the order of the enum.
// clang-format off
inline constexpr ActivationInfo kActivations[] = {
    {Activation::none,      "none",      false},
    {Activation::relu,      "relu",      false, {"relu"}},
    {Activation::relu2,     "relu2",     true,  {"relu2"}},  // max(x, 0)² (So et al. 2021, Primer)
    {Activation::gelu,      "gelu",      true,  {"gelu", "gelu_python"}},  // x Φ(x), Φ by erf
    {Activation::gelu_tanh, "gelu_tanh", true,                             // Φ by tanh (GPT-2)
     {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}},
    {Activation::silu,      "silu",      true,  {"silu", "swish"}},        // x / (1 + e^-x)
    {Activation::tanh,      "tanh",      false, {"tanh"}},
};
// clang-format on

constexpr bool backward_needs_input(Activation activation) {
  return kActivations[static_cast<int>(activation)].backward_needs_input;
}

constexpr std::string_view name(Activation activation) {
  return kActivations[static_cast<int>(activation)].name;
}

// y = activation(x). y may equal x.
void activate(Activation activation, const float* x, float* y, int64_t n);

// dx = dy * activation'(saved), where `saved` is the input or the output, as backward_needs_input
// says. dx may equal dy.
void activate_backward(Activation activation, const float* saved, const float* dy, float* dx,
                       int64_t n);

// y = activation(x + bias), row by row; all matrices [rows, cols] contiguous.
struct BiasActivation {
  const float* x;
  const float* bias = nullptr;  // [cols], or null for none
  Activation activation;
  float* sum = nullptr;  // where x + bias is kept for the gradient, or null; may equal x, not y
  float* y;              // may equal x
  int64_t rows, cols;
};
void bias_activation(const BiasActivation& args);

// y[r, c] = activation(gate[r, c]) * up[r, c].
struct GatedActivation {
  Activation activation;
  const float* gate;  // [rows, cols], its rows input_stride apart
  const float* up;    // likewise; usually the other half of the same matrix
  int64_t input_stride;
  float* y;  // [rows, cols] contiguous; may equal gate or up if they are too
  int64_t rows, cols;
};
void gated_activation(const GatedActivation& args);

// dgate = dy * up * activation'(gate), dup = dy * activation(gate).
struct GatedActivationBackward {
  Activation activation;
  const float* gate;
  const float* up;
  int64_t input_stride;
  const float* dy;  // [rows, cols] contiguous
  float* dgate;     // may be gate, and dup may be up, where the strides are equal
  float* dup;
  int64_t gradient_stride;
  bool accumulate = false;  // add to dgate and dup instead of writing them
  int64_t rows, cols;
};
void gated_activation_backward(const GatedActivationBackward& args);

}  // namespace heed::kernels
