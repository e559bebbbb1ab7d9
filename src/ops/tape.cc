#include "ops/tape.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/rows/elementwise.h"
#include "ops/ctx.h"

namespace heed {
namespace {

constexpr size_t kChunkBytes = 64 << 10;

// A free buffer up to this many times too large is used rather than a new one made.
constexpr int64_t kMaxSlack = 4;

}  // namespace

void* Tape::allocate(size_t bytes, size_t alignment) {
  HEED_CHECK(bytes <= kChunkBytes, "tape: a record must fit a chunk");
  chunk_used_ = (chunk_used_ + alignment - 1) / alignment * alignment;
  if (chunk_used_ + bytes > kChunkBytes) ++chunk_, chunk_used_ = 0;
  if (chunk_ == chunks_.size()) chunks_.push_back(std::make_unique<std::byte[]>(kChunkBytes));
  std::byte* place = chunks_[chunk_].get() + chunk_used_;
  chunk_used_ += bytes;
  return place;
}

Gradient* Tape::gradient(int64_t rows, int64_t cols) {
  Gradient* g = new (allocate(sizeof(Gradient), alignof(Gradient))) Gradient;
  g->rows = rows, g->cols = cols;
  return g;
}

int Tape::take_buffer(Arena& arena, int64_t floats) {
  HEED_CHECK(buffers_.empty() || arena.used_bytes() >= buffers_.back().arena_end,
             "tape: the tape must be cleared before the arena is rewound or replaced");
  int best = -1;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& b = buffers_[i];
    if (b.in_use || b.floats < floats || b.floats > kMaxSlack * floats) continue;
    if (best < 0 || b.floats < buffers_[static_cast<size_t>(best)].floats) {
      best = static_cast<int>(i);
    }
  }
  if (best < 0) {
    best = static_cast<int>(buffers_.size());
    const Arena::Mark begin = arena.mark();
    float* data = arena.allocate<float>(static_cast<size_t>(floats));
    buffers_.push_back({data, floats, false, begin, arena.used_bytes()});
  }
  buffers_[static_cast<size_t>(best)].in_use = true;
  return best;
}

void Tape::give_buffer(Arena& arena, int buffer) {
  buffers_[static_cast<size_t>(buffer)].in_use = false;
  while (!buffers_.empty() && !buffers_.back().in_use &&
         buffers_.back().arena_end == arena.used_bytes()) {
    arena.rewind(buffers_.back().arena_begin);
    buffers_.pop_back();
  }
}

Mat Tape::view(const Gradient& g) const {
  const Gradient& owner = g.whole ? *g.whole : g;
  float* data = buffer(owner.buffer);
  return {data ? data + g.first_column : nullptr, g.rows, g.cols, owner.cols};
}

Mat Tape::arrived(Ctx&, const Gradient& out) {
  HEED_CHECK(out.written, "tape: the gradient of an output must be written before its backward");
  return view(out);
}

GradientTarget Tape::target(Ctx& ctx, Gradient& input) {
  Gradient& owner = input.whole ? *input.whole : input;
  if (owner.buffer < 0) owner.buffer = take_buffer(ctx.arena, owner.rows * owner.cols);
  const bool accumulate = input.written;
  input.written = true;
  return {view(input), accumulate};
}

void Tape::pass(Ctx& ctx, Gradient& out, Gradient& input) {
  HEED_CHECK(out.rows == input.rows && out.cols == input.cols,
             "tape: pass() needs gradients of the same shape");
  const bool movable = !out.whole && !input.whole && !input.written && input.buffer < 0;
  if (movable) {
    input.buffer = std::exchange(out.buffer, -1);
    input.written = true;
    return;
  }
  const Mat from = view(out);
  const GradientTarget to = target(ctx, input);
  ctx.parallel(from.rows, row_grain(from.cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (to.accumulate) {
        kernels::add(from.row(r), to.value.row(r), from.cols);
      } else {
        std::copy_n(from.row(r), from.cols, to.value.row(r));
      }
    }
  });
}

void Tape::backward(Ctx& ctx, const std::function<void()>& after_each) {
  const struct ClearAtEnd {
    Tape& tape;
    ~ClearAtEnd() { tape.clear(); }
  } clear_at_end{*this};
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Node node = nodes_[i];
    if (node.out && !node.out->written) continue;  // nothing downstream depended on it
    node.run(node.saved, ctx);
    if (node.out && !node.out->whole && node.out->buffer >= 0) {
      give_buffer(ctx.arena, std::exchange(node.out->buffer, -1));
    }
    if (after_each) after_each();
  }
}

void Tape::clear() {
  nodes_.clear();
  kept_.clear();
  buffers_.clear();
  chunk_ = chunk_used_ = 0;
}

}  // namespace heed
