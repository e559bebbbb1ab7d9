// Activation (gradient) checkpointing: training with less memory (Chen et al. 2016, "Training Deep
// Nets with Sublinear Memory Cost").
//
//   const Var y = checkpoint(ctx, {&x, 1}, [&layer](Ctx& ctx, std::span<const Var> inputs) {
//     return block(ctx, layer, inputs[0]);
//   });
//
// Forward keeps only the inputs and the output of the body. Backward recomputes the body on a tape
// of its own, in memory that is released afterwards, and runs that tape. Loss and gradients have
// the same bits as without a checkpoint: dropout depends on (seed, step, site) alone, and gradients
// are added to in the same order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/ctx.h"

namespace heed {

inline constexpr size_t kMaxCheckpointInputs = 4;

namespace checkpoint_detail {

// A body of any type.
struct Body {
  const void* object;
  Var (*call)(const void* object, Ctx& ctx, std::span<const Var> inputs);
};

template <class Function>
Body as_body(const Function& function) {
  return {&function, [](const void* object, Ctx& ctx, std::span<const Var> inputs) {
            return (*static_cast<const Function*>(object))(ctx, inputs);
          }};
}

// What backward needs besides the body.
struct Saved {
  std::array<Var, kMaxCheckpointInputs> inputs;
  size_t count = 0;
  Gradient* out = nullptr;
  uint32_t site = 0;  // of the body's first random numbers

  void backward(Ctx& ctx, const Body& body) const;
};

// Runs the body, discards what it records and returns its output.
Var forward(Ctx& ctx, std::span<const Var> inputs, const Body& body, Saved& saved);

}  // namespace checkpoint_detail

// body(ctx, inputs) → Var of inputs[0]'s shape. It must depend on nothing but its inputs, weights
// and captures, it is copied, and what its captures point to must outlive backward. Activations that
// it reads must be inputs, or they would get no gradient. Without a tape it is called directly.
template <class Function>
Var checkpoint(Ctx& ctx, std::span<const Var> inputs, const Function& body) {
  if (!ctx.tape) return body(ctx, inputs);
  struct Record {
    checkpoint_detail::Saved saved;
    Function body;
    void backward(Ctx& ctx) { saved.backward(ctx, checkpoint_detail::as_body(body)); }
  };
  Record record{{}, body};
  const Var y =
      checkpoint_detail::forward(ctx, inputs, checkpoint_detail::as_body(body), record.saved);
  ctx.tape->record(y.gradient, record);
  return y;
}

}  // namespace heed
