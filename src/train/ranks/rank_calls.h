// The functions that ranks.h needs of a message library: a table, so that MPI can be a module that is
// loaded at run time (mpi_module.cc), and ranks can be threads in tests.
//
// All are called from one thread. Those that return int return 0, or an error for error_text().
#pragma once

#include <cstdint>

namespace heed {

struct RankCalls {
  void* self;  // first argument of each call
  int (*start)(void* self, int* rank, int* size);
  int (*stop)(void* self);
  // Non-blocking; *request is for test().
  int (*sum_floats)(void* self, float* numbers, int64_t count, void** request);
  int (*sum_doubles)(void* self, double* numbers, int64_t count, void** request);
  int (*broadcast)(void* self, void* bytes, int64_t count, void** request);
  int (*test)(void* self, void* request, int* done);  // after done = 1 the request is freed
  const char* (*error_text)(void* self, int error);   // valid until the next call
};

// The only function of the module. The number in its name changes with the table.
inline constexpr const char* kMpiModule = "libheed-mpi.so";
inline constexpr const char* kMpiModuleEntry = "heed_rank_calls_1";

}  // namespace heed
