// The axes along which models differ, and a small set of models that covers all pairs of them.
//
// Most bugs need one choice or a combination of two (RoPE with kv_heads, tied embeddings with a
// frozen one), so every pair of values is in some config of the set. Values of an axis may exclude
// only tasks, the first axis: choices that require each other (parallel residuals and pre-norm) are
// one value.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/config.h"

namespace heed::matrix {

struct AxisValue {
  std::string name;
  std::function<void(ModelConfig&)> apply;
  // Whether the axis has an effect in a model of this task.
  std::function<bool(const ModelConfig&)> acts = [](const ModelConfig&) { return true; };
};

struct Axis {
  std::string name;
  std::vector<AxisValue> values;
};

const std::vector<Axis>& axes();

// One value of each axis, by index.
using Choice = std::vector<size_t>;

struct MatrixCase {
  Choice choice;
  ModelConfig config;
  std::string title;  // "task=tagger, position=rope, …"
};

// A value of an axis.
using Point = std::pair<size_t, size_t>;
// Whether validate() accepts the value in a model of this task, and it has a meaning there.
bool fits(size_t task, const Point& point);
// Whether some task allows both.
bool possible(const Point& a, const Point& b);

// The covering set; deterministic.
const std::vector<MatrixCase>& covering_set();

}  // namespace heed::matrix
