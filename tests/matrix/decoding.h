// The decoder run through a KV cache, a few rows of each sequence at a time.
#pragma once

#include <vector>

#include "model/network.h"
#include "sample.h"

namespace heed::matrix {

// Logits of every row of the sample's decoder input, in the order of the sample. Each decode step
// takes the next `chunk` rows of every sequence that has rows left, so steps mix sequences at
// different positions.
std::vector<float> cached_logits(const Network& model, const Sample& sample, int64_t chunk);

}  // namespace heed::matrix
