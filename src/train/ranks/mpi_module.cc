// rank_calls.h over MPI: the shared library libheed-mpi.so, which open_mpi() loads and nothing links.
// So only runs under mpirun need MPI, or pay for its start.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "train/ranks/rank_calls.h"

namespace heed {
namespace {

int start(void*, int* rank, int* size) {
  int provided = 0;
  // Funneled: the thread that starts MPI is the only one to call it.
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)) {
    return error;
  }
  if (const int error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)) return error;
  if (const int error = MPI_Comm_rank(MPI_COMM_WORLD, rank)) return error;
  return MPI_Comm_size(MPI_COMM_WORLD, size);
}

int stop(void*) { return MPI_Finalize(); }

template <class Begin>
int begin(void** request, const Begin& call) {
  auto* mine = new MPI_Request;
  const int error = call(mine);
  if (error) {
    delete mine;
  } else {
    *request = mine;
  }
  return error;
}

int sum_floats(void*, float* numbers, int64_t count, void** request) {
  return begin(request, [&](MPI_Request* mine) {
    return MPI_Iallreduce(MPI_IN_PLACE, numbers, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD, mine);
  });
}

int sum_doubles(void*, double* numbers, int64_t count, void** request) {
  return begin(request, [&](MPI_Request* mine) {
    return MPI_Iallreduce(MPI_IN_PLACE, numbers, static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                          MPI_COMM_WORLD, mine);
  });
}

int broadcast(void*, void* bytes, int64_t count, void** request) {
  return begin(request, [&](MPI_Request* mine) {
    return MPI_Ibcast(bytes, static_cast<int>(count), MPI_BYTE, 0, MPI_COMM_WORLD, mine);
  });
}

int test(void*, void* request, int* done) {
  auto* mine = static_cast<MPI_Request*>(request);
  const int error = MPI_Test(mine, done, MPI_STATUS_IGNORE);
  if (!error && *done) delete mine;
  return error;
}

const char* error_text(void*, int error) {
  static char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length)) return "unknown error";
  return text;
}

const RankCalls kCalls{.self = nullptr,
                       .start = start,
                       .stop = stop,
                       .sum_floats = sum_floats,
                       .sum_doubles = sum_doubles,
                       .broadcast = broadcast,
                       .test = test,
                       .error_text = error_text};

}  // namespace
}  // namespace heed

extern "C" const heed::RankCalls* heed_rank_calls_1() { return &heed::kCalls; }
