// A request as the scheduler takes it: texts as ids, options with the model's limits applied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/engine.h"
#include "infer/search/text_search.h"

namespace heed {

struct RequestPlan {
  std::vector<int32_t> source;         // of encoder-decoder models
  std::vector<TextSpan> source_spans;  // of each source id; empty: the source was raw ids
  std::vector<int32_t> prompt;         // or the decoder start token and the prefix
  int64_t input_tokens = 0;
  bool truncated = false;
  SearchPlan search;
};

// Throws invalid_argument, unsupported, or not_found for a missing tokenizer.
RequestPlan plan_request(const Model& model, const Request& request);

}  // namespace heed
