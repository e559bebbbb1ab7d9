// The processes of one training, and their collective operations.
//
//   Ranks ranks;                                     // one process: all calls do nothing
//   Ranks ranks(open_mpi());                         // the processes that mpirun started
//   ranks.begin_sum(gradients);                      // sums over all ranks in the background …
//   ranks.finish_sums();                             // … until this returns
//
// All ranks must make the same calls in the same order. A sum has the same bits on every rank, and in
// every run with the same number of ranks.
//
// One background thread makes all calls to the message library, so that sums overlap with compute.
// Errors of the library are thrown by the next call that waits. A rank that ends with an exception
// does not shut the library down: mpirun then ends the other ranks too.
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
  // `calls` must outlive this. Throws invalid_argument if the library cannot start.
  explicit Ranks(const RankCalls* calls);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool first() const { return rank_ == 0; }  // the one that writes

  // Sums over all ranks, in place. The numbers must not be used before finish_sums().
  void begin_sum(std::span<float> numbers);
  void finish_sums();

  // These block.
  void sum(std::span<double> numbers);
  int64_t sum(int64_t number);
  void broadcast(std::span<std::byte> bytes);  // from the first rank to all
  void broadcast(std::span<float> numbers) { broadcast(std::as_writable_bytes(numbers)); }
  void broadcast(std::string& text);
  int64_t broadcast(int64_t number);
  void barrier();  // returns when all ranks have called it

  double waiting_seconds() const { return waiting_seconds_; }  // spent in finish_sums() so far

 private:
  class Messenger;
  void finish();

  std::unique_ptr<Messenger> messenger_;
  int rank_ = 0, size_ = 1;
  double waiting_seconds_ = 0;
};

// The MPI library, from a module that is loaded here: programs that do not call this need no MPI.
// Throws unsupported if there is none.
const RankCalls* open_mpi();

}  // namespace heed
