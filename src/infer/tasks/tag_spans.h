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

// A span begins at B- or at another name and continues at I- of the same name; O ends it. Words whose
// labels have neither prefix, such as parts of speech, are spans of their own; tokens of one word are
// joined.
std::vector<TaggedSpan> tag_spans(std::span<const TagPart> parts,
                                  const std::vector<std::string>& labels);

}  // namespace heed
