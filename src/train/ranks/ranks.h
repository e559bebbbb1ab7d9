// The processes of one training: who this one is, and what they tell each other.
//
//   Ranks ranks;                                     // one process: all of this does nothing
//   Ranks ranks(open_mpi());                         // those that mpirun has started
//   ranks.begin_sum(gradients);                      // adds up over all ranks while we go on …
//   ranks.finish_sums();                             // … and is there when this returns
//
// All ranks make the same calls in the same order. A sum has the same bits on every rank, and in
// every run with as many ranks.
//
// One thread of its own makes all calls to the message library, so that sums proceed while the
// others compute. Errors of the library are thrown by the next call that waits. A rank that ends
// in an exception does not take leave of the others: mpirun then ends them too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "train/ranks/rank_calls.h"

namespace heed {

class Ranks {
 public:
  Ranks();
  // `calls` must outlive this. Throws invalid_argument when the library cannot start.
  explicit Ranks(const RankCalls* calls);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool first() const { return rank_ == 0; }  // the one that writes

  // Adds the numbers up over all ranks, in place. They must not be touched before finish_sums().
  void begin_sum(std::span<float> numbers);
  void finish_sums();

  // These return when they are done.
  void sum(std::span<double> numbers);
  int64_t sum(int64_t number);
  void broadcast(std::span<std::byte> bytes);  // the first rank's, to all
  void broadcast(std::span<float> numbers) { broadcast(std::as_writable_bytes(numbers)); }
  void broadcast(std::string& text);
  int64_t broadcast(int64_t number);
  void barrier();  // returns when all have come here

  double waiting_seconds() const { return waiting_seconds_; }  // spent in finish_sums() so far

 private:
  class Messenger;
  void finish();

  std::unique_ptr<Messenger> messenger_;
  int rank_ = 0, size_ = 1;
  double waiting_seconds_ = 0;
};

// The calls of the MPI library, from a module that is loaded when it is asked for: programs that
// never ask need no MPI. Throws unsupported when there is none.
const RankCalls* open_mpi();

}  // namespace heed
