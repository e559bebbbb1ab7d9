// The label that data writes and losses skip.
#pragma once

#include <cstdint>

namespace heed {

// A row with this label counts for neither loss nor metrics (PyTorch's ignore_index).
inline constexpr int32_t kIgnoreLabel = -100;

}  // namespace heed
