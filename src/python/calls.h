// How Python's threads wait for the library: without the lock that only one of them can hold, and
// still listening to Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <csignal>
#include <exception>
#include <functional>
#include <vector>

#include "heed/error.h"

namespace heed::python {

namespace py = pybind11;

// While it lives, this thread's signal handlers have a stack of their own: matrix products keep
// numbers below the stack pointer (see heed/train.h), and Python's handlers ask for such a stack if
// there is one (since 3.10).
class SignalStack {
 public:
  SignalStack() {
    sigaltstack(nullptr, &before_);
    if ((before_.ss_flags & SS_DISABLE) == 0) return;  // somebody has seen to it
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

// Python code that runs in the middle of the library's work, and what it raises there: the work is
// asked to stop, and the caller gets the exception.
class Interruption {
 public:
  // Returns whether to go on.
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
  // As the library asks it.
  std::function<bool()> is_cancelled() {
    return [this] { return !go_on(); };
  }
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
};

// Runs work(interruption) without Python's lock.
template <class Work>
auto without_lock(Work work) {
  Interruption interruption;
  const SignalStack stack;
  try {
    const py::gil_scoped_release release;
    return work(interruption);
  } catch (const Error&) {
    interruption.rethrow();  // the reason why it was cancelled
    throw;
  }
}

}  // namespace heed::python
