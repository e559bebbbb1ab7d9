// How many requests may work at once, and how many may wait for that.
//
//   Gate gate({.running = 64, .waiting = 256, .wait_seconds = 30});
//   const Gate::Ticket ticket = gate.enter([&] { return request.is_client_gone(); });
//
// First come, first served. Throws HttpError: 429 when too many wait already, 503 when the wait was
// too long or the gate is closed.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

namespace heed::serve {

struct GateLimits {
  int running = 64;
  int waiting = 256;
  double wait_seconds = 30;
};

class Gate {
 public:
  explicit Gate(const GateLimits& limits) : limits_(limits) {}

  // The right to work, given back when it goes.
  class Ticket {
   public:
    explicit Ticket(Gate* gate) : gate_(gate) {}
    Ticket(Ticket&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    Gate* gate_;
  };

  Ticket enter(const std::function<bool()>& is_client_gone);
  // From now on everybody is refused, those who wait as well.
  void close();
  // Whether all have left within the time.
  bool wait_until_empty(double seconds);

  int running() const;
  int waiting() const;

 private:
  void leave();

  const GateLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  std::list<bool> line_;  // a place for each that waits, the first first
  bool is_closed_ = false;
};

}  // namespace heed::serve
