#include "serve/http/gate.h"

#include <chrono>

#include "serve/http/http_error.h"

namespace heed::serve {
namespace {

using Clock = std::chrono::steady_clock;

// Polling interval for disconnected clients.
constexpr std::chrono::milliseconds kPollInterval{100};

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

HttpError closed() { return HttpError::later(503, "the server is shutting down", 5); }

}  // namespace

Gate::Ticket Gate::enter(const std::function<bool()>& is_client_gone) {
  std::unique_lock lock(mutex_);
  if (is_closed_) throw closed();
  if (running_ < limits_.running && queue_.empty()) {
    ++running_;
    return Ticket(this);
  }
  if (static_cast<int>(queue_.size()) >= limits_.waiting) {
    throw HttpError::later(429, "too many queued requests", 1);
  }
  const auto entry = queue_.insert(queue_.end(), false);
  // On every exit the entry leaves the queue and the next one is woken.
  struct Leave {
    Gate& gate;
    std::list<bool>::iterator entry;
    ~Leave() {
      gate.queue_.erase(entry);
      gate.changed_.notify_all();
    }
  } leave{*this, entry};
  const auto deadline = Clock::now() + seconds(limits_.wait_seconds);
  while (true) {
    if (is_closed_) throw closed();
    if (running_ < limits_.running && queue_.begin() == entry) {
      ++running_;
      return Ticket(this);
    }
    const auto now = Clock::now();
    if (now >= deadline) {
      throw HttpError::later(503, "the server is busy: timeout in the queue", 5);
    }
    changed_.wait_until(lock, std::min(deadline, now + kPollInterval));
    if (is_client_gone()) throw HttpError(kClientGone, "the client has disconnected");
  }
}

void Gate::leave() {
  {
    const std::lock_guard lock(mutex_);
    --running_;
  }
  changed_.notify_all();
}

void Gate::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

bool Gate::wait_until_empty(double time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, seconds(time), [&] { return running_ == 0 && queue_.empty(); });
}

int Gate::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

int Gate::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(queue_.size());
}

}  // namespace heed::serve
