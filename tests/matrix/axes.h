// The axes along which models differ, and a small set of models that covers all pairs of them.
//
// Most faults come from one choice or from two that meet (RoPE with a second number of heads, tied
// embeddings with a frozen one), so every pair of values is in some config of the set. An axis's
// values conflict with nothing but the task, which is the first axis: what only goes together
// (parallel residuals and pre-norm) is one value.
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
  // Whether it changes anything in a model of this task.
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
// Whether some task takes both.
bool possible(const Point& a, const Point& b);

// The covering set, always the same one.
const std::vector<MatrixCase>& covering_set();

}  // namespace heed::matrix
