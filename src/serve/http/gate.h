// Admission control: limits running and queued requests.
//
//   Gate gate({.running = 64, .waiting = 256, .wait_seconds = 30});
//   const Gate::Ticket ticket = gate.enter([&] { return request.is_client_gone(); });
//
// FIFO. Throws HttpError: 429 when the queue is full, 503 on timeout or when the gate is closed.
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

  // Permission to run, released by the destructor.
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
  // Refuses all requests from now on, including queued ones.
  void close();
  // Whether all requests finished within the time.
  bool wait_until_empty(double seconds);

  int running() const;
  int waiting() const;

 private:
  void leave();

  const GateLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  std::list<bool> queue_;  // one entry per waiting request, FIFO
  bool is_closed_ = false;
};

}  // namespace heed::serve
