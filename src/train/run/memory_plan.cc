#include "train/run/memory_plan.h"

#include <algorithm>
#include <optional>

#include "base/text/number_text.h"
#include "heed/error.h"
#include "kernels/matmul/tiled_gemm.h"

namespace heed {
namespace {

constexpr int64_t kShortSequence = 16;
// With fewer tokens in a batch, GEMMs are too small for the machine's full speed.
constexpr int64_t kEnoughTokens = 1024;
// Beside the arena, GEMMs hold packed panels: oneDNN's in total, and per thread those of
// kernels/matmul/tiled_gemm.h.
constexpr int64_t kLibraryBytes = 16 << 20;
constexpr int64_t kPackedBytesOfThread = kernels::kTiledGemmBytes;

void add_sequences(Rows& rows, int64_t tokens, int64_t length) {
  while (tokens > 0) {
    const int64_t count = std::min(tokens, length);
    rows.tokens.insert(rows.tokens.end(), static_cast<size_t>(count), 0);
    rows.end_sequence();
    tokens -= count;
  }
}

}  // namespace

TrainingBatch shape_batch(const ModelConfig& config, int64_t tokens, int64_t length) {
  TrainingBatch batch;
  const bool two = config.family == Family::encoder_decoder;
  add_sequences(batch.input, std::max<int64_t>(two ? tokens / 2 : tokens, 1), length);
  if (two) add_sequences(batch.target, batch.input.rows(), length);
  const auto rows = static_cast<size_t>(two ? batch.target.rows() : batch.input.rows());
  const auto sequences = static_cast<size_t>(batch.sequences());
  if (config.head == Head::regression) {
    batch.scores.resize(sequences * static_cast<size_t>(config.labels));
  } else if (config.head == Head::classifier) {
    batch.sequence_labels.resize(sequences);
  } else {
    batch.labels.resize(rows);
    if (config.head == Head::masked_lm && config.pooler) batch.next_sentence.resize(sequences);
  }
  return batch;
}

namespace {

int64_t bytes_of_weights(const ModelConfig& config) {
  return parameter_count(config) * static_cast<int64_t>(sizeof(float));
}

// Weights, gradients and optimizer state.
int64_t training_weight_bytes(const ModelConfig& config, const MemoryPlanOptions& options) {
  return options.bytes_per_weight * parameter_count(config) + options.teacher_bytes;
}

int64_t program_bytes(const MemoryPlanOptions& options) {
  return options.process_bytes + kLibraryBytes + options.threads * kPackedBytesOfThread;
}

// Independent of the batches.
int64_t fixed_bytes(const ModelConfig& config, const MemoryPlanOptions& options) {
  return training_weight_bytes(config, options) + kCopiesWhileSaving * bytes_of_weights(config);
}

}  // namespace

int64_t room_for_activations(const ModelConfig& config, const MemoryPlanOptions& options) {
  return options.limit_bytes - fixed_bytes(config, options) - program_bytes(options);
}

namespace {

// With the recompute that the network is set to.
MemoryPlan plan_as_set(StepRunner& runner, const ModelConfig& config,
                       const MemoryPlanOptions& options) {
  MemoryPlan plan;
  plan.weight_bytes = training_weight_bytes(config, options);
  const int64_t longest = std::max<int64_t>(options.longest, 1);
  const auto activations = [&](int64_t tokens) {
    int64_t most = 0;
    for (const int64_t length : {longest, std::min(kShortSequence, longest)}) {
      const TrainingBatch batch = shape_batch(config, tokens, length);
      most = std::max(most, static_cast<int64_t>(runner.training_bytes(batch)));
    }
    return most;
  };
  plan.batch_tokens = options.requested_tokens;
  plan.activation_bytes = options.largest
                              ? static_cast<int64_t>(runner.training_bytes(*options.largest))
                              : activations(plan.batch_tokens);
  if (options.limit_bytes <= 0) return plan;
  const int64_t room = room_for_activations(config, options);
  plan.room_bytes = std::max<int64_t>(room, 0);
  if (plan.activation_bytes <= room) return plan;
  // Examples are never cut, so a batch has at least the length of the longest.
  const int64_t least = (config.family == Family::encoder_decoder ? 2 : 1) * longest;
  if (activations(least) > room) {
    throw Error(ErrorCode::out_of_memory,
                "training needs " + megabytes(options.limit_bytes - room + activations(least)) +
                    ", --memory allows " + megabytes(options.limit_bytes) + ": " +
                    megabytes(fixed_bytes(config, options)) +
                    " for weights, optimizer state and a copy to save, " +
                    megabytes(program_bytes(options)) + " for the program, " +
                    megabytes(activations(least)) + " for one example of " +
                    std::to_string(longest) + " tokens",
                "allow more --memory, lower data.max_tokens, or choose a smaller model");
  }
  int64_t low = std::min(least, plan.batch_tokens), high = plan.batch_tokens;
  while (high - low > std::max<int64_t>(low / 64, 1)) {
    const int64_t middle = low + (high - low) / 2;
    (activations(middle) <= room ? low : high) = middle;
  }
  plan.batch_tokens = low;
  plan.activation_bytes = activations(low);
  return plan;
}

}  // namespace

MemoryPlan plan_memory(StepRunner& runner, Network& network, const MemoryPlanOptions& options) {
  const ModelConfig& config = network.config();
  network.set_activation_checkpointing(false);
  if (options.recompute == Recompute::automatic) {
    MemoryPlanOptions without = options;
    without.recompute = Recompute::off;
    const std::optional<MemoryPlan> plan = plan_if_it_fits(runner, network, without);
    if (plan && plan->batch_tokens >= std::min(options.requested_tokens, kEnoughTokens))
      return *plan;
  } else if (options.recompute == Recompute::off) {
    return plan_as_set(runner, config, options);
  }
  network.set_activation_checkpointing(true);
  MemoryPlan plan = plan_as_set(runner, config, options);
  plan.recompute = true;
  return plan;
}

std::optional<MemoryPlan> plan_if_it_fits(StepRunner& runner, Network& network,
                                          const MemoryPlanOptions& options) {
  try {
    return plan_memory(runner, network, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return std::nullopt;
  }
}

}  // namespace heed
