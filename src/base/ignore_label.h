// The label that both data and losses know.
#pragma once

#include <cstdint>

namespace heed {

// Marks a row that counts neither for the loss nor for a metric (PyTorch's ignore_index).
inline constexpr int32_t kIgnoreLabel = -100;

}  // namespace heed
