#include "serve/routes/completion.h"

#include <algorithm>
#include <cmath>

#include "serve/routes/logprobs.h"

namespace heed::serve {
namespace {

void check_limits(const CompletionCall& request, const ServedModel& served,
                  const ServerLimits& limits) {
  const auto refuse = [](const std::string& field, const std::string& message) {
    throw HttpError::bad_field(field, field + " " + message);
  };
  if (!served.model().can_generate()) {
    throw HttpError(400, "the model '" + served.name() + "' does not generate text", "unsupported",
                    "model");
  }
  const auto answers = static_cast<int64_t>(request.prompt.values.size()) * request.n();
  if (answers > limits.texts) {
    refuse("n", "times the prompts must be at most " + std::to_string(limits.texts) + ", got " +
                    std::to_string(answers));
  }
  if (request.prompt.values.empty()) refuse("prompt", "must not be an empty list");
  if (request.best_of != 0 && request.best_of != request.n()) {
    refuse("best_of", "must be n, got " + std::to_string(request.best_of));
  }
  if (request.has_beam() && request.n() > request.search.values.beam) {
    refuse("n", "must be at most beam, got " + std::to_string(request.n()));
  }
  if (request.echo && served.model().has_source()) {
    refuse("echo", "must be false for an encoder-decoder model: the prompt is its source");
  }
  if (request.max_tokens == 0 && !request.echo)
    refuse("max_tokens", "must be at least 1 without echo");
}

// OpenAI's defaults are not the model's: sampling at temperature 1 from all tokens.
SearchOptions search_for(const CompletionCall& request, const Model& model) {
  SearchOptions defaults = model.search_options();
  const SearchOptions standard;
  defaults.beam = defaults.nbest = 1, defaults.length_penalty = standard.length_penalty;
  defaults.temperature = standard.temperature, defaults.top_k = standard.top_k;
  defaults.top_p = standard.top_p, defaults.min_p = standard.min_p;
  defaults.stop.clear(), defaults.max_length = 0;
  SearchOverrides given = request.search;
  if (!request.has_beam() && !given.has("temperature")) given.set("temperature");
  SearchOptions search = apply(std::move(defaults), given);
  if (!request.has_beam()) search.nbest = 1;
  search.max_new_tokens = std::max<int64_t>(request.max_tokens, 1);
  std::erase(search.stop, "");
  return search;
}

}  // namespace

void describe(Fields& fields, CompletionCall& call) {
  fields.text({.name = "model", .about = "model name; required if several models generate"},
              call.model);
  fields.prompts({.name = "prompt", .about = "text or token ids, or a list", .required = true},
                 call.prompt);
  const auto answers = static_cast<double>(fields.limits().answers);
  fields.integer({.name = "max_tokens",
                  .about = "maximum number of new tokens (16); 0 with echo",
                  .min = 0,
                  .max = static_cast<double>(fields.limits().new_tokens)},
                 call.max_tokens);
  describe_search(fields, call.search, {"max_new_tokens"});
  fields.flag({.name = "stream", .about = "reply with server-sent events"}, call.stream);
  fields.inside({.name = "stream_options", .about = "options of a stream"}, [&](Fields& inner) {
    inner.flag({.name = "include_usage", .about = "token counts in the last event"},
               call.include_usage);
  });
  fields.integer(
      {.name = "logprobs", .about = "most probable tokens of each position", .min = 0, .max = 20},
      call.logprobs);
  fields.text({.name = "truncate",
               .about = "Heed: cut prompts beyond the context length at this side (no: an error)",
               .choices = {"no", "left", "right"}},
              call.truncate);
  fields.flag({.name = "echo", .about = "prepend the prompt"}, call.echo);
  fields.integer({.name = "best_of", .about = "must be n", .min = 1, .max = answers}, call.best_of);
  fields.only({.name = "suffix", .about = "not supported"}, "");
  fields.ignored({.name = "user", .about = "not used"});
}

const char* finish_name(FinishReason reason) {
  return reason == FinishReason::length ? "length" : "stop";
}

Completion::Completion(Call& call, CompletionCall request)
    : request_(std::move(request)),
      served_(call.service.model_for(call, request_.model, "generate")),
      engine_(nullptr),
      service_(call.service),
      id_("cmpl-" + call.id),
      deadline_(call.deadline) {
  check_limits(request_, *served_, call.service.options().limits);
  engine_ = served_->engine();
  search_ = search_for(request_, served_->model());
  check(search_);
  truncate_ = from_name<Truncation>(request_.truncate).value_or(Truncation::no);
}

// Runs the model over the whole text again, which costs as much as a prefill of its length. Keeping the
// top tokens of every step would slow down all requests without logprobs.
Json Completion::logprobs_json(const Choice& choice,
                               const std::function<bool()>& is_cancelled) const {
  const Model& model = served_->model();
  const std::vector<int32_t>& ids = choice.answer.ids;
  TaskInput input;
  if (model.has_source()) {
    input.text = choice.prompt.text, input.ids = choice.prompt.ids.value_or(std::vector<int32_t>{});
    input.second_ids = ids;
  } else {
    input.ids = ids;
  }
  const int top = static_cast<int>(*request_.logprobs);
  const Predicted predicted = served_->predictor().predict({input}, {.top = top}, is_cancelled)[0];
  // A text longer than the context is cut at its start.
  const size_t left_out = ids.size() - predicted.ids.size();
  // The EOS token is not part of the text.
  const auto new_tokens = static_cast<size_t>(choice.answer.new_tokens);
  const size_t ends = choice.answer.finish == FinishReason::end && new_tokens > 0 ? 1 : 0;
  Completed completed{.ids = std::span(ids).first(ids.size() - ends),
                      .answer_tokens = new_tokens - ends,
                      .answer = choice.answer.text,
                      .is_cut = choice.answer.finish == FinishReason::stop};
  if (request_.echo) {
    completed.prompt = choice.prompt_text;
    completed.prompt_is_text = !choice.prompt.ids;
  }

  Json tokens = Json::array(), scores = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const auto& [token, text, offset] : listed_tokens(model, completed)) {
    if (token < left_out) continue;
    constexpr size_t kTokensBetweenLooks = 64;
    if (tokens.size() % kTokensBetweenLooks == 0) throw_if_cancelled(is_cancelled);
    const size_t place = token - left_out;  // in `predicted`
    tokens.push_back(text), offsets.push_back(offset);
    if (place == 0) {  // the first token has no probability
      scores.push_back(nullptr), tops.push_back(nullptr);
      continue;
    }
    scores.push_back(predicted.token_scores[place - 1]);
    // If two tokens have the same text, one is named by its piece.
    Json best = Json::object();
    for (const Candidate& candidate : predicted.next[place - 1]) {
      const bool is_own = candidate.id == ids[token] && !text.empty();
      std::string key =
          is_own ? text : text_after(model, std::span(ids).first(token), candidate.id);
      if (!is_own && (key == text || best.contains(key))) key = candidate.piece;
      if (best.contains(key)) key += " (" + std::to_string(candidate.id) + ")";
      best[key] = std::log(candidate.probability);
    }
    tops.push_back(std::move(best));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(scores)},
          {"top_logprobs", *request_.logprobs > 0 ? std::move(tops) : Json()},
          {"text_offset", std::move(offsets)}};
}

}  // namespace heed::serve
