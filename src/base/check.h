// HEED_CHECK: internal errors (bugs in Heed). Invalid arguments throw an Error with another code.
#pragma once

#include <string_view>

#include "heed/error.h"

namespace heed {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view why);

}  // namespace heed

// Throws Error(internal) with file and line unless `condition` holds; also in release builds.
// `why` is anything convertible to std::string_view, evaluated only on failure.
#define HEED_CHECK(condition, why)                                 \
  do {                                                             \
    if (!(condition)) [[unlikely]]                                 \
      ::heed::check_failed(__FILE__, __LINE__, #condition, (why)); \
  } while (false)

// The same for hot loops: compiled out of release builds.
#ifdef NDEBUG
#define HEED_DCHECK(condition, why) \
  do {                              \
  } while (false)
#else
#define HEED_DCHECK(condition, why) HEED_CHECK(condition, why)
#endif
