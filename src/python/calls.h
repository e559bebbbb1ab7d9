// Calls into the library without the GIL, interruptible by Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <csignal>
#include <exception>
#include <functional>
#include <vector>

#include "heed/error.h"

namespace heed::python {

namespace py = pybind11;

// An alternate signal stack for this thread, while it exists: GEMM kernels use memory below the
// stack pointer (see heed/train.h), and Python's handlers use such a stack if there is one (since
// 3.10).
class SignalStack {
 public:
  SignalStack() {
    sigaltstack(nullptr, &before_);
    if ((before_.ss_flags & SS_DISABLE) == 0) return;  // already set
    room_.resize(size_t{1} << 16);
    stack_t stack{};
    stack.ss_sp = room_.data(), stack.ss_size = room_.size();
    sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    if (!room_.empty()) sigaltstack(&before_, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  stack_t before_{};
  std::vector<char> room_;
};

// Python code that runs during a call of the library. If it raises, the call is cancelled and the
// exception is raised again at its end.
class Interruption {
 public:
  // Returns whether to continue.
  bool run(const std::function<bool()>& code) {
    const py::gil_scoped_acquire lock;
    try {
      if (raised_) return false;
      return code();
    } catch (...) {
      raised_ = std::current_exception();
      return false;
    }
  }
  bool go_on() {
    return run([] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      return true;
    });
  }
  // For the library's is_cancelled.
  std::function<bool()> is_cancelled() {
    return [this] { return !go_on(); };
  }
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
};

// Runs work(interruption) without the GIL.
template <class Work>
auto without_lock(Work work) {
  Interruption interruption;
  const SignalStack stack;
  try {
    const py::gil_scoped_release release;
    return work(interruption);
  } catch (const Error&) {
    interruption.rethrow();  // the reason of the cancellation
    throw;
  }
}

}  // namespace heed::python
