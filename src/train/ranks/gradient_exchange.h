// Sums gradients over the ranks while backward still runs.
//
//   GradientExchange exchange(parameters, [&](std::span<float> part) { ranks.begin_sum(part); });
//   exchange.begin();                                   // before a step's last backward
//   tape.backward(ctx, [&] { exchange.advance(); });    // sends final gradients
//   exchange.finish();                                  // sends the rest
//   ranks.finish_sums();
//
// Weights are stored in the order of the forward pass, so backward completes them from the last to
// the first. A gradient is final after as many contributions as the dry run counted
// (WeightGradient::planned); a bucket is sent when all of its gradients are. The order of the buckets
// is fixed: it must be the same on all ranks, whatever their batches are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/parameters.h"

namespace heed {

class GradientExchange {
 public:
  // Borrows the parameters, which must have full gradients. `send` is called once per step and
  // bucket. A bucket has whole weights, of at least `bucket_floats` together.
  using Send = std::function<void(std::span<float>)>;
  GradientExchange(Parameters& parameters, Send send, int64_t bucket_floats = kBucketFloats);

  void begin();
  void advance();
  void finish();

  size_t buckets() const { return buckets_.size(); }
  size_t sent() const { return next_; }  // buckets, since begin()

  // 4 MB: large enough to be limited by bandwidth and not latency at 10 Gbit/s, and small enough
  // that little is left to send after the last layer.
  static constexpr int64_t kBucketFloats = 1 << 20;

 private:
  struct Bucket {
    size_t first_slot, last_slot;  // of the weights, both included
    std::span<float> numbers;
  };
  void send();

  Parameters& parameters_;
  Send send_;
  std::vector<Bucket> buckets_;  // in the order of sending
  size_t next_ = 0;              // the bucket to send next …
  size_t incomplete_ = 0;        // … and its last weight that may be incomplete
};

}  // namespace heed
