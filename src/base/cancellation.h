// Cancels long work: the caller passes a function, which the work polls.
#pragma once

#include <functional>

#include "heed/error.h"

namespace heed {

// Throws cancelled if `is_cancelled` is set and returns true.
inline void throw_if_cancelled(const std::function<bool()>& is_cancelled) {
  if (is_cancelled && is_cancelled()) {
    throw Error(ErrorCode::cancelled, "the request was cancelled");
  }
}

}  // namespace heed
