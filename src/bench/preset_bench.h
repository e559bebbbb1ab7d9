// Shared code of the benchmarks of whole presets.
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

// A preset, adapted to sequences of `length`. Throws not_found for an unknown name, and
// invalid_argument for a length beyond its position table.
ModelConfig preset_config(const std::string& name, int64_t length);

// Random weights of a type of kernels/matmul/weight_types.h, packed as in a model that was loaded. Throws
// invalid_argument for others.
Network preset_network(const ModelConfig& config, uint64_t seed, const std::string& type);
// Bytes of a matrix [rows, cols] of that type.
double weight_bytes(const std::string& type, const ParameterSpec& spec);

std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary);

// Threads, instruction set and parameters of a result.
void describe_run(const ModelConfig& config, const ThreadPool& pool, PresetBench& result);
// Its speeds, from the seconds of the best batch, the operations of its matmuls, and the shares of
// the GEMM limit.
void fill_speeds(double seconds, double flops, const PairedShares& gemm, PresetBench& result);

// The p-th percentile. Sorts the values, which must not be empty.
double percentile(std::vector<double>& values, size_t p);
Percentiles percentiles(std::vector<double>& values);

}  // namespace heed::bench
