// The most probable next tokens.
#include "heed/tasks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/error.h"
#include "infer/engine/prompt_ids.h"
#include "infer/tasks/task_runner.h"
#include "kernels/rows/softmax.h"

namespace heed {
namespace {

// Positions between two polls of is_cancelled.
constexpr size_t kPlacesBetweenLooks = 64;

// log sum e^(logit / temperature)
double log_sum_exp(std::span<const float> logits, double temperature) {
  if (temperature == 1) return kernels::log_sum_exp(logits.data(), std::ssize(logits));
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp((logit - most) / temperature);
  return most / temperature + std::log(sum);
}

// The most probable ids of a row of logits; of equal ones the lower id.
std::vector<Candidate> most_probable(std::span<const float> logits, const PredictOptions& options) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min(static_cast<size_t>(std::max(options.top, 0)), ids.size());
  std::ranges::partial_sort(
      ids, ids.begin() + static_cast<ptrdiff_t>(count), [&](int32_t a, int32_t b) {
        const float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
        return la != lb ? la > lb : a < b;
      });
  const double log_sum = log_sum_exp(logits, options.temperature);
  std::vector<Candidate> best;
  for (size_t i = 0; i < count; ++i) {
    const double score = logits[static_cast<size_t>(ids[i])] / options.temperature - log_sum;
    best.push_back({.id = ids[i], .probability = std::exp(score)});
  }
  return best;
}

void spell(std::vector<Candidate>& candidates, const Tokenizer& tokenizer) {
  for (Candidate& candidate : candidates) {
    if (candidate.id >= tokenizer.vocabulary_size()) continue;  // padding of the model's matrix
    candidate.piece = tokenizer.piece(candidate.id);
    candidate.text = tokenizer.decode(std::span(&candidate.id, 1));
  }
}

std::vector<int32_t> target_ids(const TaskRunner& runner, const TaskInput& input) {
  if (!input.second_ids.empty()) return input.second_ids;
  const ModelConfig& config = runner.config();
  const int32_t start = config.decoder_start_id >= 0 ? config.decoder_start_id : config.bos_id;
  if (start < 0) {
    throw Error(ErrorCode::unsupported,
                "the model does not say which token its decoder starts with",
                "set decoder_start_token_id in its config.json");
  }
  std::vector<int32_t> ids = {start};
  if (!input.second || input.second->empty()) return ids;
  const std::vector<int32_t> text = runner.model().tokenizer().encode_ids(
      *input.second, {.special_tokens = false, .side = TextSide::target});
  ids.insert(ids.end(), text.begin(), text.end());
  return ids;
}

}  // namespace

Predictor::Predictor(Model model, const TaskOptions& options)
    : runner_(std::make_shared<TaskRunner>(std::move(model), options)) {
  need_head(runner_->model(), {{Head::language_model}}, "predicting tokens");
}

std::vector<Predicted> Predictor::predict(const std::vector<TaskInput>& inputs,
                                          const PredictOptions& options,
                                          const std::function<bool()>& is_cancelled) const {
  if (!(options.temperature > 0)) {
    throw Error(ErrorCode::invalid_argument,
                "temperature must be above 0, got " + std::to_string(options.temperature),
                "near 0 the most probable token has probability 1");
  }
  const Model& model = runner_->model();
  const auto most = static_cast<size_t>(runner_->max_tokens());
  std::vector<Predicted> results(inputs.size());
  std::vector<TaskSequence> sequences;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Predicted& result = results[i];
    TaskSequence& sequence = sequences.emplace_back();
    const TaskInput& input = inputs[i];
    if (model.has_source()) {
      TaskInput source = input;
      source.second.reset();
      const ReadInput read = runner_->read(source, static_cast<int64_t>(most));
      sequence = runner_->sequence(read.encoding);
      result.truncated = read.truncated;
      result.ids = target_ids(*runner_, input);
    } else {
      result.ids = input.ids.empty() ? prompt_ids(model, input.text) : input.ids;
    }
    if (result.ids.size() > most) {
      result.ids.erase(result.ids.begin(), result.ids.end() - static_cast<ptrdiff_t>(most));
      result.truncated = true;
    }
    if (model.has_source() && sequence.ids.empty()) result.ids.clear();
    if (result.ids.empty()) continue;
    (model.has_source() ? sequence.target : sequence.ids) = result.ids;
    result.tokens = static_cast<int64_t>(sequence.tokens());
    result.next.resize(options.everywhere ? result.ids.size() : 1);
    result.token_scores.resize(options.everywhere ? result.ids.size() - 1 : 0);
  }

  runner_->run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    const PackedBatch& packed = model.has_source() ? batch.target : batch.source;
    struct Place {
      Predicted* result;
      size_t token;
    };
    std::vector<int32_t> rows;
    std::vector<Place> places;
    for (size_t s = 0; s < batch.members.size(); ++s) {
      Predicted& result = results[batch.members[s]];
      for (size_t t = options.everywhere ? 0 : result.ids.size() - 1; t < result.ids.size(); ++t) {
        rows.push_back(packed.offsets[s] + static_cast<int32_t>(t));
        places.push_back({&result, t});
      }
    }
    const Var hidden = runner_->hidden(ctx, batch);
    runner_->each_logits(ctx, hidden, rows, is_cancelled, [&](size_t i, std::span<float> logits) {
      const auto [result, token] = places[i];
      result->next[options.everywhere ? token : 0] = most_probable(logits, options);
      if (!options.everywhere || token + 1 == result->ids.size()) return;
      const int32_t id = result->ids[token + 1];
      if (id < 0 || id >= std::ssize(logits)) {
        throw Error(ErrorCode::invalid_argument, "token id " + std::to_string(id) +
                                                     " is outside the model's vocabulary of " +
                                                     std::to_string(logits.size()));
      }
      const float log_sum = kernels::log_sum_exp(logits.data(), std::ssize(logits));
      result->token_scores[token] = logits[static_cast<size_t>(id)] - log_sum;
    });
  });
  if (model.has_tokenizer()) {
    for (Predicted& result : results) {
      for (size_t i = 0; i < result.next.size(); ++i) {
        if (i % kPlacesBetweenLooks == 0) throw_if_cancelled(is_cancelled);
        spell(result.next[i], model.tokenizer());
      }
    }
  }
  return results;
}

}  // namespace heed
