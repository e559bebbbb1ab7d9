// Activations and their gradients, alone, after a bias, and as the gate of a feed-forward layer.
//
// A new activation is one line of the enum and of kActivations here, one functor in
// activation-inl.h, and one line in the table of activation_test.cc.
//
// Each element is computed by itself: cutting an array anywhere gives the same bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace heed::kernels {

enum class Activation { none, relu, gelu, gelu_tanh, silu, tanh };

struct ActivationInfo {
  Activation activation;
  const char* name;  // as in config files
  // Whether the gradient is computed from the input, or from the output, which a model has at hand
  // anyway.
  bool backward_needs_input;
};

// In the order of the enum.
inline constexpr ActivationInfo kActivations[] = {
    {Activation::none, "none", false},          {Activation::relu, "relu", false},
    {Activation::gelu, "gelu", true},            // x Φ(x), exact: Φ by erf
    {Activation::gelu_tanh, "gelu_tanh", true},  // its approximation by tanh (GPT-2)
    {Activation::silu, "silu", true},            // x / (1 + e^-x), also called swish
    {Activation::tanh, "tanh", false},
};

constexpr bool backward_needs_input(Activation activation) {
  return kActivations[static_cast<int>(activation)].backward_needs_input;
}

const char* name(Activation activation);

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
