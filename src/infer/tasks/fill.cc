// Mask filling, by a masked language model.
#include <algorithm>
#include <numeric>

#include "heed/error.h"
#include "infer/tasks/task_runner.h"
#include "kernels/rows/softmax.h"

namespace heed {
namespace {

// Common spellings of the mask token.
constexpr std::string_view kMasks[] = {"[MASK]", "<mask>"};

std::string with_own_mask(std::string text, const std::string& own) {
  for (const std::string_view mask : kMasks) {
    if (mask == own) continue;
    for (size_t at = text.find(mask); at != std::string::npos;
         at = text.find(mask, at + own.size())) {
      text.replace(at, mask.size(), own);
    }
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const size_t end = text.find_last_not_of(" \t");
  return text.substr(begin, end == text.npos ? 0 : end + 1 - begin);
}

// The most probable ids of a row; of equal ones the lower id.
std::vector<Candidate> best_of(std::span<const float> probabilities, int top) {
  std::vector<int32_t> ids(probabilities.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min(static_cast<size_t>(std::max(top, 0)), ids.size());
  const auto likelier = [&](int32_t a, int32_t b) {
    const float pa = probabilities[static_cast<size_t>(a)];
    const float pb = probabilities[static_cast<size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  };
  std::ranges::partial_sort(ids, ids.begin() + static_cast<ptrdiff_t>(count), likelier);
  std::vector<Candidate> best;
  for (size_t i = 0; i < count; ++i) {
    best.push_back({.id = ids[i], .probability = probabilities[static_cast<size_t>(ids[i])]});
  }
  return best;
}

// The span of the mask without the space that RoBERTa's tokenizer includes.
TextSpan without_space(TextSpan span, const std::string& text) {
  while (span.begin < span.end && text[static_cast<size_t>(span.begin)] == ' ') ++span.begin;
  while (span.begin < span.end && text[static_cast<size_t>(span.end) - 1] == ' ') --span.end;
  return span;
}

void spell(Filled& filled, const Tokenizer& tokenizer) {
  filled.text = filled.source;
  // From the end, so that earlier spans stay valid.
  for (size_t m = filled.masks.size(); m-- > 0;) {
    FilledMask& mask = filled.masks[m];
    for (Candidate& candidate : mask.candidates) {
      if (candidate.id >= tokenizer.vocabulary_size()) continue;  // padding of the model's matrix
      candidate.piece = tokenizer.piece(candidate.id);
      candidate.text = trimmed(tokenizer.decode(std::span(&candidate.id, 1)));
    }
    if (mask.candidates.empty() || mask.span.begin == mask.span.end) continue;
    filled.text.replace(static_cast<size_t>(mask.span.begin),
                        static_cast<size_t>(mask.span.end - mask.span.begin),
                        mask.candidates[0].text);
  }
}

}  // namespace

Filler::Filler(Model model, const TaskOptions& options)
    : runner_(std::make_shared<TaskRunner>(std::move(model), options)) {
  need_head(runner_->model(), {{Head::masked_lm}}, "filling masks");
}

std::vector<Filled> Filler::fill(const std::vector<TaskInput>& inputs, const FillOptions& options,
                                 const std::function<bool()>& is_cancelled) const {
  need_single_texts(inputs, "filling masks");
  const Model& model = runner_->model();
  int32_t mask_id = options.mask_id.value_or(-1);
  if (mask_id < 0) mask_id = model.tokenizer().special_ids().mask;
  if (mask_id < 0) {
    throw Error(ErrorCode::unsupported, "this model's tokenizer has no mask token",
                "fill takes a masked language model such as BERT or RoBERTa");
  }
  const std::string own = model.has_tokenizer() ? model.tokenizer().piece(mask_id) : "";
  std::vector<TaskInput> texts = inputs;
  for (TaskInput& input : texts) input.text = with_own_mask(std::move(input.text), own);

  const int64_t most = runner_->max_tokens();
  const std::vector<ReadInput> read = runner_->read(texts, most);
  std::vector<Filled> results(inputs.size());
  std::vector<TaskSequence> sequences;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Encoding& encoding = read[i].encoding;
    Filled& filled = results[i];
    filled.tokens = std::ssize(encoding.ids), filled.truncated = read[i].truncated;
    filled.source = texts[i].text;
    for (size_t t = 0; t < encoding.ids.size(); ++t) {
      if (encoding.ids[t] != mask_id || encoding.is_special[t]) continue;
      filled.masks.push_back({.token = static_cast<int64_t>(t),
                              .span = without_space(encoding.offsets[t], filled.source)});
    }
    const bool is_empty = trimmed(filled.source).empty() && inputs[i].ids.empty();
    if (filled.masks.empty() && !is_empty) {
      const std::string which =
          "input " + std::to_string(options.first_number + static_cast<int64_t>(i)) + ": ";
      if (filled.truncated) {
        throw Error(ErrorCode::invalid_argument,
                    which + "no mask among the first " + std::to_string(filled.tokens) +
                        " tokens, the context length of the model",
                    "shorten the text before the mask");
      }
      throw Error(
          ErrorCode::invalid_argument, which + "there is no mask in the text",
          "write " + (own.empty() ? std::string(kMasks[0]) : own) + " where a word is missing");
    }
    sequences.push_back(filled.masks.empty() ? TaskSequence{} : runner_->sequence(encoding));
  }

  runner_->run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    std::vector<int32_t> rows;
    std::vector<FilledMask*> masks;
    for (size_t s = 0; s < batch.members.size(); ++s) {
      for (FilledMask& mask : results[batch.members[s]].masks) {
        rows.push_back(batch.source.offsets[s] + static_cast<int32_t>(mask.token));
        masks.push_back(&mask);
      }
    }
    const Var hidden = runner_->hidden(ctx, batch);
    runner_->each_logits(ctx, hidden, rows, is_cancelled, [&](size_t i, std::span<float> logits) {
      kernels::softmax(logits.data(), logits.data(), std::ssize(logits));
      masks[i]->candidates = best_of(logits, options.top);
    });
  });
  if (model.has_tokenizer()) {
    for (Filled& filled : results) spell(filled, model.tokenizer());
  }
  return results;
}

}  // namespace heed
