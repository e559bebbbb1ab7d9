// For any input, a reader must succeed or throw an Error with a message that is not internal.
#pragma once

#include <cstdlib>
#include <string>

#include "heed/error.h"

namespace heed::fuzz {

template <class Read>
void expect_ordinary(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal || std::string(error.what()).empty()) std::abort();
  }
}

}  // namespace heed::fuzz
