// The tape: what training adds to the one text of the model.
//
// With a tape, each op records what its backward needs, and Tape::backward() runs the records in
// reverse. Without one (Ctx::tape == nullptr) nothing is recorded: that is inference. There is no
// graph, no virtual layer and no reference count: a record is a small struct with a backward(Ctx&).
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

// The gradient of one activation: allocated when the first consumer's backward writes it, given
// back when its producer's backward has read it.
struct Gradient {
  int64_t rows = 0, cols = 0;
  int buffer = -1;            // index into the tape's buffers; -1: not written
  Gradient* whole = nullptr;  // a slice shares the buffer of the matrix it was split from …
  int64_t first_column = 0;   // … from this column
  bool written = false;
  bool value_kept = false;  // a backward will read the value again, see keep_value()
};

// An activation: its value and, in training, where its gradient goes.
struct Var {
  Mat value;
  Gradient* gradient = nullptr;
  bool value_kept = false;  // the caller still needs the value: no op may work in its place

  int64_t rows() const { return value.rows; }
  int64_t cols() const { return value.cols; }
};

// An op that reads a value again in its backward (its input's, or its output's as ReLU does) says
// so here, and later ops do not overwrite it.
inline void keep_value(const Var& x) {
  if (x.gradient) (x.gradient->whole ? x.gradient->whole : x.gradient)->value_kept = true;
}
inline bool value_is_kept(const Var& x) {
  if (!x.gradient) return x.value_kept;
  const Gradient& owner = x.gradient->whole ? *x.gradient->whole : *x.gradient;
  return x.value_kept || owner.value_kept;
}

// Where a backward puts the gradient of an input: written the first time, added to after that.
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

  // Runs all records in reverse order and then forgets them, also when one throws. `after_each`,
  // where given, is called after each record.
  void backward(Ctx& ctx, const std::function<void()>& after_each = {});
  // Forgets everything. The arena may be rewound after this, and not before; so also call it when
  // a forward has thrown. (A tape that finds its arena rewound under it throws `internal`.)
  void clear();

  // For records. The gradient that has arrived at an output (slices: that part of it).
  Mat arrived(Ctx& ctx, const Gradient& out);
  // The place for an input's gradient; call it once for each contribution.
  GradientTarget target(Ctx& ctx, Gradient& input);
  // Gives the whole of `out`'s gradient to `input` as it is (d_input += d_out), by handing over
  // the buffer where that is possible.
  void pass(Ctx& ctx, Gradient& out, Gradient& input);

  // A buffer of `floats` that lives in the arena until given back; see Scratch.
  int take_buffer(Arena& arena, int64_t floats);
  // The newest go back to the arena, so that what comes next can have their place whatever its
  // size.
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

  // Records are tiny next to activations, and are needed even when the arena only measures, so
  // they live here, in chunks that are kept from step to step.
  void* allocate(size_t bytes, size_t alignment);
  Mat view(const Gradient& g) const;

  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<const void, void (*)(const void*)>> kept_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  size_t chunk_ = 0, chunk_used_ = 0;
};

}  // namespace heed
