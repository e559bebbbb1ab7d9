// The activations in double precision, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/rows/activation.h"

namespace heed::kernels {

inline double activation_reference(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::relu2:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

}  // namespace heed::kernels
