// The tape: what training adds to the forward pass.
//
// With a tape, each op records what its backward needs, and Tape::backward() runs the records in
// reverse. Without one (Ctx::tape == nullptr) nothing is recorded: that is inference. There is no
// graph and no reference count: a record is a small struct with a backward(Ctx&).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "ops/mat.h"

namespace heed {

struct Ctx;

// The gradient of one activation: allocated when the first consumer's backward writes it, released
// when its producer's backward has read it.
struct Gradient {
  int64_t rows = 0, cols = 0;
  int buffer = -1;            // index into the tape's buffers; -1: not written
  Gradient* whole = nullptr;  // a slice shares the buffer of the matrix it was split from …
  int64_t first_column = 0;   // … from this column
  bool written = false;
  bool value_kept = false;  // a backward reads the value, see keep_value()
};

// An activation: its value and, in training, its gradient.
struct Var {
  Mat value;
  Gradient* gradient = nullptr;
  bool value_kept = false;  // the caller still needs the value: no op may work in its place

  int64_t rows() const { return value.rows; }
  int64_t cols() const { return value.cols; }
};

// Called by an op whose backward reads a value (its input's, or its output's as ReLU does): later
// ops then do not work in place on it.
inline void keep_value(const Var& x) {
  if (x.gradient) (x.gradient->whole ? x.gradient->whole : x.gradient)->value_kept = true;
}
inline bool value_is_kept(const Var& x) {
  if (!x.gradient) return x.value_kept;
  const Gradient& owner = x.gradient->whole ? *x.gradient->whole : *x.gradient;
  return x.value_kept || owner.value_kept;
}

// The gradient of an input or weight: the first contribution is written, later ones are added.
struct GradientTarget {
  Mat value;
  bool accumulate = false;
};

class Tape {
 public:
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // A gradient for a new activation of this shape.
  Gradient* gradient(int64_t rows, int64_t cols);

  // Appends a record, a trivially destructible struct with `void backward(Ctx&)`. It runs when
  // `out` (its output's gradient) has been written, and `out` is released after. out = null:
  // it always runs.
  template <class Record>
  void record(Gradient* out, const Record& record) {
    static_assert(std::is_trivially_destructible_v<Record>);
    void* place = allocate(sizeof(Record), alignof(Record));
    nodes_.push_back({new (place) Record(record), out,
                      [](void* saved, Ctx& ctx) { static_cast<Record*>(saved)->backward(ctx); }});
  }

  // Keeps a value until clear(), for records that borrow it.
  template <class T>
  const T* keep(T value) {
    kept_.emplace_back(new T(std::move(value)),
                       [](const void* kept) { delete static_cast<const T*>(kept); });
    return static_cast<const T*>(kept_.back().get());
  }

  // Runs all records in reverse order and then clears them, also when one throws. `after_each`, if
  // given, is called after each record.
  void backward(Ctx& ctx, const std::function<void()>& after_each = {});
  // Clears everything. Call it before the arena is rewound, also when a forward has thrown.
  // (Otherwise the next use throws `internal`.)
  void clear();

  // For records: the gradient of an output (of a slice: that part).
  Mat arrived(Ctx& ctx, const Gradient& out);
  // The gradient of an input; call it once for each contribution.
  GradientTarget target(Ctx& ctx, Gradient& input);
  // d_input += d_out, by moving the buffer where that is possible.
  void pass(Ctx& ctx, Gradient& out, Gradient& input);

  // A buffer of `floats` in the arena, until give_buffer(); see Scratch.
  int take_buffer(Arena& arena, int64_t floats);
  // The newest buffers are returned to the arena, which can use their memory for any size.
  void give_buffer(Arena& arena, int buffer);
  float* buffer(int index) const { return buffers_[static_cast<size_t>(index)].data; }

 private:
  struct Node {
    void* saved;
    Gradient* out;
    void (*run)(void* saved, Ctx& ctx);
  };
  struct Buffer {
    float* data;
    int64_t floats;
    bool in_use;
    Arena::Mark arena_begin;  // of the arena, before the buffer …
    size_t arena_end;         // … and when it was the newest
  };

  // Records are small, and needed even when the arena only measures, so they are here and not in
  // the arena: in chunks that are reused by the next step.
  void* allocate(size_t bytes, size_t alignment);
  Mat view(const Gradient& g) const;

  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<const void, void (*)(const void*)>> kept_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  size_t chunk_ = 0, chunk_used_ = 0;
};

}  // namespace heed
