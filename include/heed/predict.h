// What comes next: the likeliest tokens after a text, and at every place in it.
//
//   heed::Predictor predictor(model);
//   heed::Predicted p = predictor.predict({{.text = "Once upon a"}})[0];
//   p.next.back()[0].text;        // " time"
//
// Models with a decoder and a language model's head. Many inputs at once, threads and errors are as
// in heed/tasks.h.
#pragma once

#include <memory>
#include <vector>

#include "heed/tasks.h"

namespace heed {

struct PredictOptions {
  int top = 5;             // candidates for each place
  bool everywhere = true;  // false: only after the last token
  double temperature = 1;  // that the candidates' probabilities are taken at; above 0
};

struct Predicted : TaskResult {
  std::vector<int32_t>
      ids{};  // as the decoder reads them: its start or the text's first token first
  // log p of each id, given those before it; one fewer than ids, for nothing comes before the
  // first. Empty unless everywhere.
  std::vector<float> token_scores{};
  // The likeliest tokens after ids[0], after ids[1], …; only the last of them unless everywhere.
  std::vector<std::vector<Candidate>> next{};
};

class Predictor {
 public:
  explicit Predictor(Model model, const TaskOptions& options = {});
  // Decoder-only models read the text (or ids); encoder-decoder models the text, and `second` (or
  // second_ids, with the decoder's start) as far as the target is written. What is longer than the
  // model reads loses its beginning, so that what comes next still is what is asked.
  std::vector<Predicted> predict(const std::vector<TaskInput>& inputs,
                                 const PredictOptions& options = {},
                                 const std::function<bool()>& is_cancelled = {}) const;

 private:
  std::shared_ptr<TaskRunner> runner_;
};

}  // namespace heed
