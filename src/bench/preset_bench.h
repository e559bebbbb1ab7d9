// What the benches of whole presets have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/thread_pool.h"
#include "bench/turns.h"
#include "heed/bench.h"
#include "model/network.h"

namespace heed::bench {

// A preset, made fit for sequences of `length`. Throws not_found for an unknown name, and
// invalid_argument for a length that its table of positions does not have.
ModelConfig preset_config(const std::string& name, int64_t length);

// Random weights of a type of kernels/matmul/weight_types.h, packed as in a model that was loaded. Throws
// invalid_argument for others.
Network preset_network(const ModelConfig& config, uint64_t seed, const std::string& type);
// What a matrix [rows, cols] of that type takes.
double weight_bytes(const std::string& type, const ParameterSpec& spec);

std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary);

// Threads, instruction set and parameters of a result.
void describe_run(const ModelConfig& config, const ThreadPool& pool, PresetBench& result);
// Its speeds, from the seconds that the best batch took, the operations of its matrix products, and
// all batches next to the GEMM limit.
void fill_speeds(double seconds, double flops, const PairedShares& gemm, PresetBench& result);

// The share p of 100 of all values lies at or below this one; values are not empty, and sorted by
// the call.
double percentile(std::vector<double>& values, size_t p);
Percentiles percentiles(std::vector<double>& values);

}  // namespace heed::bench
