// Spans from labels: B-LOC I-LOC O → one LOC.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/tasks.h"

namespace heed {

// A word or a token, with its most probable label.
struct TagPart {
  TextSpan span;
  int label = 0;
  double probability = 0;
};

// Grouping of transformers: a span continues while the name is the same and no B- begins another; O
// ends it. A label without B- or I- is a name by itself.
std::vector<TaggedSpan> tag_spans(std::span<const TagPart> parts,
                                  const std::vector<std::string>& labels);

}  // namespace heed
