// Gradients that go out to the other ranks while backward is still at work.
//
//   GradientExchange exchange(parameters, [&](std::span<float> part) { ranks.begin_sum(part); });
//   exchange.begin();                                   // before a step's last backward
//   tape.backward(ctx, [&] { exchange.advance(); });    // what is final goes out
//   exchange.finish();                                  // and the rest
//   ranks.finish_sums();
//
// Weights lie in the order in which a forward pass meets them, so backward completes them from the
// last to the first. How often backward will add to each weight is known before it runs: the
// measuring pass counts it (WeightGradient::planned). When the count is reached the gradient is
// final, and when all of a bucket's are, the bucket goes out. Buckets go in one fixed order, which
// all ranks share whatever their batches look like.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/parameters.h"

namespace heed {

class GradientExchange {
 public:
  // Borrows the parameters, which must have gradients. `send` is given each part of them once a
  // step. A bucket is made of whole weights, of `bucket_floats` or a little more.
  using Send = std::function<void(std::span<float>)>;
  GradientExchange(Parameters& parameters, Send send, int64_t bucket_floats = kBucketFloats);

  void begin();
  void advance();
  void finish();

  size_t buckets() const { return buckets_.size(); }
  size_t sent() const { return next_; }  // buckets, since begin()

  // 4 MB: enough that bandwidth rather than latency counts on a network of 10 Gbit/s, and few
  // enough to wait for after the last layer.
  static constexpr int64_t kBucketFloats = 1 << 20;

 private:
  struct Bucket {
    size_t first_slot, last_slot;  // of the weights, both included
    std::span<float> numbers;
  };
  void send();

  Parameters& parameters_;
  Send send_;
  std::vector<Bucket> buckets_;  // in the order in which they go out
  size_t next_ = 0;              // the bucket that is waited for …
  size_t incomplete_ = 0;        // … and its last weight that may not be complete
};

}  // namespace heed
