// Ranks that are threads of one process, for tests of what several ranks do together.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "train/ranks/ranks.h"

namespace heed {

// Sums in the order of the ranks. Also notices ranks that do not make the same calls.
class RankHub {
 public:
  explicit RankHub(int size) : members_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      Member& m = members_[static_cast<size_t>(rank)];
      m.hub = this, m.rank = rank;
      m.calls = {.self = &m,
                 .start = start,
                 .stop = stop,
                 .sum_floats = sum<float>,
                 .sum_doubles = sum<double>,
                 .broadcast = broadcast,
                 .test = test,
                 .error_text = [](void*, int) { return "the ranks' calls differ"; }};
    }
  }
  const RankCalls* calls(int rank) const { return &members_[static_cast<size_t>(rank)].calls; }

  int completed() const { return completed_; }  // messages
  int stopped() const { return stopped_; }      // ranks that took their leave

 private:
  static constexpr int kDiffer = 1;

  struct Message {
    std::vector<void*> places;
    int64_t bytes = 0;
    int arrived = 0, read = 0;
    bool done = false;
  };
  struct Member {
    RankHub* hub = nullptr;
    int rank = 0;
    int64_t next = 0;  // how many messages it has begun
    RankCalls calls{};
  };

  static int start(void* self, int* rank, int* size) {
    const auto* m = static_cast<Member*>(self);
    *rank = m->rank;
    *size = static_cast<int>(m->hub->members_.size());
    return 0;
  }
  static int stop(void* self) {
    ++static_cast<Member*>(self)->hub->stopped_;
    return 0;
  }

  template <class Combine>
  static int arrive(void* self, void* data, int64_t bytes, void** request, const Combine& combine) {
    auto* m = static_cast<Member*>(self);
    RankHub& hub = *m->hub;
    const std::lock_guard lock(hub.mutex_);
    Message& message = hub.messages_[m->next++];
    message.places.resize(hub.members_.size());
    message.places[static_cast<size_t>(m->rank)] = data;
    if (message.arrived > 0 && message.bytes != bytes) return kDiffer;
    message.bytes = bytes;
    if (++message.arrived == static_cast<int>(hub.members_.size())) {
      combine(message.places);
      message.done = true;
      ++hub.completed_;
    }
    *request = &message;
    return 0;
  }

  template <class Number>
  static int sum(void* self, Number* numbers, int64_t count, void** request) {
    const auto bytes = static_cast<int64_t>(sizeof(Number)) * count;
    return arrive(self, numbers, bytes, request, [&](const std::vector<void*>& places) {
      std::vector<Number> total(static_cast<size_t>(count));
      for (void* place : places) {
        for (size_t i = 0; i < total.size(); ++i) total[i] += static_cast<Number*>(place)[i];
      }
      for (void* place : places) std::copy_n(total.data(), count, static_cast<Number*>(place));
    });
  }
  static int broadcast(void* self, void* bytes, int64_t count, void** request) {
    return arrive(self, bytes, count, request, [&](const std::vector<void*>& places) {
      for (void* place : places) {
        std::memmove(place, places.front(), static_cast<size_t>(count));
      }
    });
  }
  static int test(void* self, void* request, int* done) {
    const std::lock_guard lock(static_cast<Member*>(self)->hub->mutex_);
    *done = static_cast<Message*>(request)->done;
    return 0;
  }

  std::mutex mutex_;
  std::vector<Member> members_;
  std::map<int64_t, Message> messages_;
  std::atomic<int> completed_ = 0, stopped_ = 0;
};

// body(ranks) on as many threads as there are ranks.
template <class Body>
void run_ranks(RankHub& hub, int size, const Body& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&hub, &body, rank] {
      Ranks ranks(hub.calls(rank));
      body(ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace heed
