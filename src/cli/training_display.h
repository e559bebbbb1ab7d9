// Shared by heed train and heed sweep: the progress line and Ctrl-C.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "cli/progress.h"
#include "heed/train.h"

namespace heed::cli {

// RAII: the first Ctrl-C (or SIGTERM) requests a stop, the second one exits. One instance at a time,
// on the main thread, which receives the signals.
//
// The handler runs on an alternate stack: oneDNN's kernels store data below the red zone of the stack,
// which a handler on the same stack would overwrite.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

  static const std::atomic<bool>& requested();

 private:
  struct sigaction before_interrupt_ {
  }, before_terminate_{};
  stack_t before_stack_{};
  std::vector<char> stack_;
};

// Whether mpirun has started several processes (Open MPI and MPICH).
bool one_of_several();

std::string duration(double seconds);  // "2h5m", "3m20s", "7s"

// A progress bar on a terminal; otherwise a plain line from time to time.
class TrainingDisplay {
 public:
  void step(const TrainProgress& p);
  void note(std::string_view text);

 private:
  ProgressLine line_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace heed::cli
