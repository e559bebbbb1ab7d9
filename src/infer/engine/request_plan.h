// A request as the scheduler takes it: texts as ids, options with the model's limits in them.
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
  std::vector<TextSpan> source_spans;  // one an id, where the source was text
  std::vector<int32_t> prompt;         // or the decoder's start and the prefix
  int64_t input_tokens = 0;
  bool truncated = false;
  SearchPlan search;
};

// Throws invalid_argument, unsupported, or not_found for a missing tokenizer.
RequestPlan plan_request(const Model& model, const Request& request);

// The text of an answer's ids: without the prompt's, which ends at `prompt_tokens`, where the model
// has no source. Cut before the first stop text.
std::string answer_text(const Model& model, std::span<const int32_t> ids, size_t prompt_tokens,
                        const std::vector<std::string>& stop);

}  // namespace heed
