// What `heed train` and `heed sweep` share: the line that tells how far a training is, and Ctrl-C.
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

// While it lives, the first Ctrl-C (or SIGTERM) asks for a stop, and says so, and the second one
// ends the process. One at a time, and on the main thread, which is the one that signals go to.
//
// The handler has a stack of its own: oneDNN's products keep numbers further below the stack
// pointer than the system leaves alone, and a handler on the same stack overwrites them.
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

// Whether mpirun has started this process as one of several, as Open MPI and MPICH tell it.
bool one_of_several();

std::string duration(double seconds);  // "2h5m", "3m20s", "7s"

// A bar that is rewritten on a terminal; elsewhere a plain line now and then.
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
