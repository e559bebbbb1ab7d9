// What a message library must do for ranks.h: a table of functions, so that MPI can be a module
// which is loaded at run time (mpi_module.cc), and tests can have ranks that are threads.
//
// All are called from one thread. Those that return int give 0, or a number for error_text().
#pragma once

#include <cstdint>

namespace heed {

struct RankCalls {
  void* self;  // what each call is given
  int (*start)(void* self, int* rank, int* size);
  int (*stop)(void* self);
  // These begin; *request is what test() is asked with.
  int (*sum_floats)(void* self, float* numbers, int64_t count, void** request);
  int (*sum_doubles)(void* self, double* numbers, int64_t count, void** request);
  int (*broadcast)(void* self, void* bytes, int64_t count, void** request);
  int (*test)(void* self, void* request, int* done);  // after done = 1 the request is gone
  const char* (*error_text)(void* self, int error);   // until the next call
};

// The one function of the module. The number in its name moves when the table changes.
inline constexpr const char* kMpiModule = "libheed-mpi.so";
inline constexpr const char* kMpiModuleEntry = "heed_rank_calls_1";

}  // namespace heed
