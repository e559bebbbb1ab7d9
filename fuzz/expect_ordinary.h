// What any bytes may do to a reader: nothing, or an Error that tells the user what is wrong.
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
