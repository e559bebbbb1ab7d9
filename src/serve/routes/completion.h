// One request to /v1/completions: its fields, its sequences in the engine, and its choices.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "infer/engine/prompt_ids.h"
#include "serve/routes/search_fields.h"
#include "serve/service.h"

namespace heed::serve {

inline constexpr std::chrono::milliseconds kClientPoll{50};  // how often a disconnect is checked

struct CompletionCall {
  std::string model;
  Prompts prompt;
  int64_t max_tokens = 16, best_of = 0;
  SearchOverrides search;
  std::optional<int64_t> logprobs;
  std::string truncate = "no";
  bool stream = false, echo = false, include_usage = false;

  int64_t n() const { return search.values.nbest; }
  bool has_beam() const { return search.values.beam > 1; }
  // Without a beam each choice is a separate engine request, so that each can be streamed.
  int64_t copies() const { return has_beam() ? 1 : n(); }
};
void describe(Fields& fields, CompletionCall& call);

const char* finish_name(FinishReason reason);

// An answer of the engine, with what a JSON choice needs.
struct Choice {
  int64_t index = 0;
  std::string prompt_text;
  Answer answer;
  Prompt prompt;
};

class Completion {
 public:
  Completion(Call& call, CompletionCall request);
  ~Completion() { cancel(); }

  const CompletionCall& request() const { return request_; }

  // `piece` is called on the engine's thread.
  void submit(const std::function<void(int64_t index, const StreamPiece& piece)>& piece,
              const std::function<void()>& done) {
    if (request_.max_tokens == 0) return;
    const int64_t copies = request_.copies();
    uint64_t number = 0;
    for (const Prompt& prompt : request_.prompt.values) {
      for (int64_t i = 0; i < copies; ++i, ++number) {
        Request request{.text = prompt.text,
                        .ids = prompt.ids,
                        .search = search_,
                        .stream = number,
                        .truncate = truncate_,
                        .deadline = deadline_};
        Callbacks callbacks{.done = done};
        if (piece) {
          callbacks.piece = [piece, index = static_cast<int64_t>(number)](const StreamPiece& p) {
            piece(index, p);
          };
        }
        try {
          handles_.push_back(engine_->submit(request, std::move(callbacks)));
        } catch (...) {
          cancel();
          throw;
        }
      }
    }
  }

  size_t requests() const { return handles_.size(); }
  bool is_ready(size_t request) const { return handles_[request].is_ready(); }
  void wait_a_little(size_t request) const { handles_[request].wait_for(kClientPoll); }
  void cancel() const {
    for (const Handle& handle : handles_) handle.cancel();
  }

  // The choices of one finished engine request. Throws its error.
  std::vector<Choice> take(size_t request) {
    const Result result = handles_[request].get();
    const int64_t copies = request_.copies();
    const size_t prompt = request / static_cast<size_t>(copies);
    if (request % static_cast<size_t>(copies) == 0) input_tokens_ += result.input_tokens;
    is_truncated_ = is_truncated_ || result.truncated;
    std::vector<Choice> choices;
    for (const Answer& answer : result.answers) {
      output_tokens_ += answer.new_tokens;
      const auto rank = static_cast<int64_t>(choices.size());
      choices.push_back({.index = request_.has_beam()
                                      ? static_cast<int64_t>(prompt) * request_.n() + rank
                                      : static_cast<int64_t>(request),
                         .prompt_text = prompt_text(request_.prompt.values[prompt]),
                         .answer = answer,
                         .prompt = request_.prompt.values[prompt]});
    }
    return choices;
  }

  // For max_tokens = 0: the prompts only.
  std::vector<Choice> prompts_only() {
    std::vector<Choice> choices;
    for (size_t p = 0; p < request_.prompt.values.size(); ++p) {
      const Prompt& prompt = request_.prompt.values[p];
      Answer answer;
      answer.finish = FinishReason::length;
      answer.ids = prompt.ids ? *prompt.ids : prompt_ids(served_->model(), prompt.text);
      input_tokens_ += std::ssize(answer.ids);
      for (int64_t i = 0; i < request_.n(); ++i) {
        choices.push_back({.index = static_cast<int64_t>(p) * request_.n() + i,
                           .prompt_text = prompt_text(prompt),
                           .answer = answer,
                           .prompt = prompt});
      }
    }
    return choices;
  }

  std::string prompt_text(const Prompt& prompt) const {
    if (!prompt.ids) return prompt.text;
    return served_->model().has_tokenizer() ? served_->model().tokenizer().decode(*prompt.ids) : "";
  }

  Json choice_json(const Choice& choice, const std::function<bool()>& is_cancelled) const {
    Json json{{"index", choice.index},
              {"text", (request_.echo ? choice.prompt_text : "") + choice.answer.text}};
    json["logprobs"] = request_.logprobs ? logprobs_json(choice, is_cancelled) : Json();
    json["finish_reason"] = finish_name(choice.answer.finish);
    return json;
  }

  // One event of a stream.
  Json piece_json(int64_t index, const std::string& text) const {
    return whole(
        {{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
  }

  Json whole(Json choices) const {
    if (!choices.is_array()) choices = Json::array({std::move(choices)});
    Json json{{"id", id_},
              {"object", "text_completion"},
              {"created", created_},
              {"model", served_->name()},
              {"choices", std::move(choices)}};
    if (is_random(search_)) json["seed"] = search_.seed;
    if (is_truncated_) json["truncated"] = true;
    return json;
  }

  Json usage() const {
    return {{"prompt_tokens", input_tokens_},
            {"completion_tokens", output_tokens_},
            {"total_tokens", input_tokens_ + output_tokens_}};
  }

  void count() const { service_.metrics().count_tokens(input_tokens_, output_tokens_); }
  bool is_late() const {
    return service_.is_aborting() || std::chrono::steady_clock::now() > deadline_;
  }
  HttpError error_of(const Error& error) const { return service_.error_of(error); }
  HttpError late_error() const { return service_.cancelled_error(deadline_); }

 private:
  Json logprobs_json(const Choice& choice, const std::function<bool()>& is_cancelled) const;

  const CompletionCall request_;
  const ServedModelPtr served_;
  std::shared_ptr<Engine> engine_;
  Service& service_;
  const std::string id_;
  const int64_t created_ = static_cast<int64_t>(std::time(nullptr));
  const std::chrono::steady_clock::time_point deadline_;
  SearchOptions search_;
  Truncation truncate_ = Truncation::no;
  bool is_truncated_ = false;
  std::vector<Handle> handles_;
  int64_t input_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace heed::serve
