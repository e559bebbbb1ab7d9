#include "train/ranks/ranks.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "heed/error.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

// Maximum elements of a message. Longer ones are split into pieces, of which several can be in
// flight.
constexpr int64_t kPieceElements = 1 << 20;

// The thread sleeps between two polls of messages in flight, because the cores have other work; if
// this rank is blocked, it first polls without sleeping.
constexpr std::chrono::microseconds kPause{50};
constexpr std::chrono::milliseconds kEager{5};

struct Message {
  enum class Kind { sum_floats, sum_doubles, broadcast } kind;
  void* data;
  int64_t count;
  void* request = nullptr;
};

}  // namespace

// The communication thread. Messages start in the order in which they are posted.
class Ranks::Messenger {
 public:
  explicit Messenger(const RankCalls& calls) : calls_(calls), thread_([this] { run(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started_ || failure_; });
    if (!failure_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(failure_);
  }

  // During stack unwinding the other ranks are not waited for: they may never arrive.
  ~Messenger() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
      take_leave_ = std::uncaught_exceptions() == 0 && !failure_;
    }
    changed_.notify_all();
    thread_.join();
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  void post(const Message& message) {
    {
      const std::lock_guard lock(mutex_);
      ++unfinished_;
      posted_.push_back(message);
    }
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    waited_for_ = true;
    changed_.wait(lock, [this] { return unfinished_ == 0 || failure_; });
    waited_for_ = false;
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void check(int error) const {
    if (error == 0) return;
    throw Error(
        ErrorCode::invalid_argument,
        "the ranks cannot communicate: " + std::string(calls_.error_text(calls_.self, error)),
        "start all of them with one mpirun, on machines that reach each other");
  }

  void run() {
    try {
      check(calls_.start(calls_.self, &rank_, &size_));
      {
        const std::lock_guard lock(mutex_);
        started_ = true;
      }
      changed_.notify_all();
      talk();
      if (take_leave_) check(calls_.stop(calls_.self));
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  void talk() {
    std::vector<Message> under_way;
    Clock::time_point last_news = Clock::now();
    for (;;) {
      bool waited_for = false;
      std::deque<Message> fresh;
      {
        std::unique_lock lock(mutex_);
        if (under_way.empty()) changed_.wait(lock, [this] { return quit_ || !posted_.empty(); });
        if (quit_) return;
        fresh.swap(posted_);
        waited_for = waited_for_;
      }
      for (Message& message : fresh) {
        begin(message);
        under_way.push_back(message);
      }
      const size_t before = under_way.size();
      std::erase_if(under_way, [this](const Message& message) {
        int done = 0;
        check(calls_.test(calls_.self, message.request, &done));
        return done != 0;
      });
      if (before != under_way.size()) {
        last_news = Clock::now();
        const std::lock_guard lock(mutex_);
        unfinished_ -= static_cast<int64_t>(before - under_way.size());
        if (unfinished_ == 0) changed_.notify_all();
      } else if (!fresh.empty()) {
        last_news = Clock::now();
      } else if (waited_for && Clock::now() - last_news < kEager) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  void begin(Message& m) const {
    switch (m.kind) {
      case Message::Kind::sum_floats:
        return check(
            calls_.sum_floats(calls_.self, static_cast<float*>(m.data), m.count, &m.request));
      case Message::Kind::sum_doubles:
        return check(
            calls_.sum_doubles(calls_.self, static_cast<double*>(m.data), m.count, &m.request));
      case Message::Kind::broadcast:
        return check(calls_.broadcast(calls_.self, m.data, m.count, &m.request));
    }
  }

  const RankCalls& calls_;
  int rank_ = 0, size_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> posted_;
  int64_t unfinished_ = 0;  // posted, or in flight
  bool started_ = false, quit_ = false, take_leave_ = false, waited_for_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last member: the thread uses all others
};

Ranks::Ranks() = default;

Ranks::Ranks(const RankCalls* calls) : messenger_(std::make_unique<Messenger>(*calls)) {
  rank_ = messenger_->rank();
  size_ = messenger_->size();
}

Ranks::~Ranks() = default;

void Ranks::finish() {
  const Clock::time_point start = Clock::now();
  messenger_->wait();
  waiting_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
}

void Ranks::begin_sum(std::span<float> numbers) {
  if (!messenger_) return;
  for (size_t at = 0; at < numbers.size(); at += kPieceElements) {
    const size_t count = std::min<size_t>(kPieceElements, numbers.size() - at);
    messenger_->post({Message::Kind::sum_floats, numbers.data() + at, static_cast<int64_t>(count)});
  }
}

void Ranks::finish_sums() {
  if (messenger_) finish();
}

void Ranks::sum(std::span<double> numbers) {
  if (!messenger_ || numbers.empty()) return;
  HEED_CHECK(std::ssize(numbers) <= kPieceElements,
             "ranks: a sum of doubles must fit into one message");
  messenger_->post({Message::Kind::sum_doubles, numbers.data(), std::ssize(numbers)});
  messenger_->wait();
}

int64_t Ranks::sum(int64_t number) {
  auto exact = static_cast<double>(number);  // below 2^53
  sum(std::span(&exact, 1));
  return static_cast<int64_t>(exact);
}

void Ranks::broadcast(std::span<std::byte> bytes) {
  if (!messenger_) return;
  constexpr size_t kPieceBytes = kPieceElements * sizeof(float);
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto part = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
    messenger_->post({Message::Kind::broadcast, part.data(), std::ssize(part)});
  }
  messenger_->wait();
}

int64_t Ranks::broadcast(int64_t number) {
  if (!messenger_) return number;
  messenger_->post({Message::Kind::broadcast, &number, sizeof number});
  messenger_->wait();
  return number;
}

void Ranks::broadcast(std::string& text) {
  if (!messenger_) return;
  text.resize(static_cast<size_t>(broadcast(static_cast<int64_t>(text.size()))));
  if (text.empty()) return;
  messenger_->post({Message::Kind::broadcast, text.data(), std::ssize(text)});
  messenger_->wait();
}

void Ranks::barrier() { sum(int64_t{0}); }

const RankCalls* open_mpi() {
  const char* const hint =
      "install Open MPI (Debian: openmpi-bin, and libopenmpi-dev before Heed is built), or start "
      "heed without mpirun";
  // RTLD_GLOBAL: Open MPI's plugins look for its symbols. Never unloaded: MPI cannot start twice.
  void* const module = dlopen(kMpiModule, RTLD_NOW | RTLD_GLOBAL);
  if (!module) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are other threads
    const std::string why = dlerror();
    throw Error(ErrorCode::unsupported,
                "several processes need MPI, which cannot be loaded: " + why, hint);
  }
  using Entry = const RankCalls* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(module, kMpiModuleEntry));
  if (!entry) {
    throw Error(ErrorCode::unsupported,
                std::string(kMpiModule) + " belongs to another version of Heed: it has no " +
                    kMpiModuleEntry,
                hint);
  }
  return entry();
}

}  // namespace heed
