#include "train/ranks/gradient_exchange.h"

#include <algorithm>
#include <utility>

namespace heed {

GradientExchange::GradientExchange(Parameters& parameters, Send send, int64_t bucket_floats)
    : parameters_(parameters), send_(std::move(send)) {
  const std::span<float> all = parameters.all_gradients();
  const std::span<WeightGradient> slots = parameters.gradients();
  size_t end = all.size(), last = slots.size();
  for (size_t i = slots.size(); i-- > 0;) {
    const auto begin = static_cast<size_t>(slots[i].value.data - all.data());
    if (static_cast<int64_t>(end - begin) < bucket_floats && i > 0) continue;
    buckets_.push_back({i, last - 1, all.subspan(begin, end - begin)});
    end = begin, last = i;
  }
}

void GradientExchange::begin() {
  next_ = 0;
  if (!buckets_.empty()) incomplete_ = buckets_.front().last_slot;
}

void GradientExchange::advance() {
  const std::span<const WeightGradient> slots = parameters_.gradients();
  for (; next_ < buckets_.size(); send()) {
    for (;; --incomplete_) {
      if (slots[incomplete_].arrived < slots[incomplete_].planned) return;
      if (incomplete_ == buckets_[next_].first_slot) break;
    }
  }
}

// A gradient without a contribution on this rank is zero here; other ranks may have some.
void GradientExchange::send() {
  const Bucket& bucket = buckets_[next_];
  for (size_t i = bucket.first_slot; i <= bucket.last_slot; ++i) {
    WeightGradient& slot = parameters_.gradients()[i];
    if (!slot.written) std::fill_n(slot.value.data, slot.value.size(), 0.0f);
    slot.written = true;
  }
  send_(bucket.numbers);
  if (++next_ < buckets_.size()) incomplete_ = buckets_[next_].last_slot;
}

void GradientExchange::finish() {
  while (next_ < buckets_.size()) send();
}

}  // namespace heed
