// /v1/completions and /v1/embeddings, as OpenAI's clients know them.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <random>

#include "base/base64.h"
#include "infer/engine/prompt_ids.h"
#include "serve/routes/logprobs.h"
#include "serve/routes/search_fields.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // how often a client's absence is noticed

struct CompletionCall {
  std::string model;
  Prompts prompt;
  int64_t max_tokens = 16, best_of = 0;
  SearchOverrides search;
  std::optional<int64_t> logprobs;
  bool stream = false, echo = false, include_usage = false;

  int64_t n() const { return search.values.nbest; }
  bool has_beam() const { return search.values.beam > 1; }
  // Without a beam each answer is a request of its own, so that each can be streamed.
  int64_t copies() const { return has_beam() ? 1 : n(); }
};

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
  fields.flag({.name = "stream", .about = "as server-sent events"}, call.stream);
  fields.inside({.name = "stream_options", .about = "of a stream"}, [&](Fields& inner) {
    inner.flag({.name = "include_usage", .about = "token counts in the last event"},
               call.include_usage);
  });
  fields.integer(
      {.name = "logprobs", .about = "most probable tokens of each position", .min = 0, .max = 20},
      call.logprobs);
  fields.flag({.name = "echo", .about = "prepend the prompt"}, call.echo);
  fields.integer({.name = "best_of", .about = "must be n", .min = 1, .max = answers}, call.best_of);
  fields.only({.name = "suffix", .about = "not supported"}, "");
  fields.ignored({.name = "user", .about = "not used"});
}

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
  if (!given.has("seed")) given.values.seed = std::random_device{}(), given.set("seed");
  SearchOptions search = apply(std::move(defaults), given);
  if (!request.has_beam()) search.nbest = 1;
  search.max_new_tokens = std::max<int64_t>(request.max_tokens, 1);
  std::erase(search.stop, "");
  return search;
}

const char* finish_name(FinishReason reason) {
  return reason == FinishReason::length ? "length" : "stop";
}

// An answer on its way into a choice.
struct Choice {
  int64_t index = 0;
  std::string prompt_text;
  Answer answer;
  Prompt prompt;
};

// One completions request with everything that belongs to it.
class Completion {
 public:
  Completion(Call& call, CompletionCall wish)
      : wish_(std::move(wish)),
        served_(call.service.model_for(call, wish_.model, "complete")),
        engine_(nullptr),
        service_(call.service),
        id_("cmpl-" + call.id),
        deadline_(call.deadline) {
    check_limits(wish_, *served_, call.service.options().limits);
    engine_ = served_->engine();
    search_ = search_for(wish_, served_->model());
    check(search_);
  }
  ~Completion() { cancel(); }

  const CompletionCall& wish() const { return wish_; }

  // `piece` is called on the engine's thread.
  void submit(const std::function<void(int64_t index, const StreamPiece& piece)>& piece,
              const std::function<void()>& done) {
    if (wish_.max_tokens == 0) return;
    const int64_t copies = wish_.copies();
    uint64_t number = 0;
    for (const Prompt& prompt : wish_.prompt.values) {
      for (int64_t i = 0; i < copies; ++i, ++number) {
        Request request{.text = prompt.text,
                        .ids = prompt.ids,
                        .search = search_,
                        .stream = number,
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
  void wait_a_little(size_t request) const { handles_[request].wait_for(kLook); }
  void cancel() const {
    for (const Handle& handle : handles_) handle.cancel();
  }

  // The choices of one request, which is ready. Throws its error.
  std::vector<Choice> take(size_t request) {
    const Result result = handles_[request].get();
    const int64_t copies = wish_.copies();
    const size_t prompt = request / static_cast<size_t>(copies);
    if (request % static_cast<size_t>(copies) == 0) input_tokens_ += result.input_tokens;
    std::vector<Choice> choices;
    for (const Answer& answer : result.answers) {
      output_tokens_ += answer.new_tokens;
      const auto rank = static_cast<int64_t>(choices.size());
      choices.push_back({.index = wish_.has_beam() ? static_cast<int64_t>(prompt) * wish_.n() + rank
                                                   : static_cast<int64_t>(request),
                         .prompt_text = prompt_text(wish_.prompt.values[prompt]),
                         .answer = answer,
                         .prompt = wish_.prompt.values[prompt]});
    }
    return choices;
  }

  // max_tokens = 0: the prompts alone.
  std::vector<Choice> prompts_only() {
    std::vector<Choice> choices;
    for (size_t p = 0; p < wish_.prompt.values.size(); ++p) {
      const Prompt& prompt = wish_.prompt.values[p];
      Answer answer;
      answer.finish = FinishReason::length;
      answer.ids = prompt.ids ? *prompt.ids : prompt_ids(served_->model(), prompt.text);
      input_tokens_ += std::ssize(answer.ids);
      for (int64_t i = 0; i < wish_.n(); ++i) {
        choices.push_back({.index = static_cast<int64_t>(p) * wish_.n() + i,
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
              {"text", (wish_.echo ? choice.prompt_text : "") + choice.answer.text}};
    json["logprobs"] = wish_.logprobs ? logprobs_json(choice, is_cancelled) : Json();
    json["finish_reason"] = finish_name(choice.answer.finish);
    return json;
  }

  // The event of a stream.
  Json piece_json(int64_t index, const std::string& text) const {
    return whole(
        {{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
  }

  Json whole(Json choices) const {
    if (!choices.is_array()) choices = Json::array({std::move(choices)});
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", served_->name()},
            {"choices", std::move(choices)}};
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

  const CompletionCall wish_;
  const ServedModelPtr served_;
  std::shared_ptr<Engine> engine_;
  Service& service_;
  const std::string id_;
  const int64_t created_ = static_cast<int64_t>(std::time(nullptr));
  const std::chrono::steady_clock::time_point deadline_;
  SearchOptions search_;
  std::vector<Handle> handles_;
  int64_t input_tokens_ = 0, output_tokens_ = 0;
};

// The model reads the whole text once more, which costs as much as a prompt of its length: cheaper
// than to keep the likeliest tokens of every step for all who do not ask.
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
  const int top = static_cast<int>(*wish_.logprobs);
  const Predicted predicted = served_->predictor().predict({input}, {.top = top}, is_cancelled)[0];
  // What the model reads at most may be less than the text: the beginning is then left out.
  const size_t left_out = ids.size() - predicted.ids.size();
  // The token that ended the text is none of it.
  const auto new_tokens = static_cast<size_t>(choice.answer.new_tokens);
  const size_t ends = choice.answer.finish == FinishReason::end && new_tokens > 0 ? 1 : 0;
  Completed completed{.ids = std::span(ids).first(ids.size() - ends),
                      .answer_tokens = new_tokens - ends,
                      .answer = choice.answer.text,
                      .is_cut = choice.answer.finish == FinishReason::stop};
  if (wish_.echo) {
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
    if (place == 0) {  // nothing comes before it
      scores.push_back(nullptr), tops.push_back(nullptr);
      continue;
    }
    scores.push_back(predicted.token_scores[place - 1]);
    // Two tokens may spell the same; then one of them goes by its piece.
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
          {"top_logprobs", *wish_.logprobs > 0 ? std::move(tops) : Json()},
          {"text_offset", std::move(offsets)}};
}

HttpReply whole_completion(Call& call, Completion& completion) {
  completion.submit({}, {});
  std::vector<Choice> all;
  if (completion.requests() == 0) all = completion.prompts_only();
  for (size_t r = 0; r < completion.requests(); ++r) {
    while (!completion.is_ready(r)) {
      completion.wait_a_little(r);
      throw_if_cancelled(call.cancelled());
    }
    for (Choice& choice : completion.take(r)) all.push_back(std::move(choice));
  }
  Json choices = Json::array();
  for (const Choice& choice : all) {
    choices.push_back(completion.choice_json(choice, call.cancelled()));
  }
  Json json = completion.whole(std::move(choices));
  json["usage"] = completion.usage();
  completion.count();
  return json_reply(json);
}

// What the engine's thread has written and the client's thread will send.
class PieceQueue {
 public:
  struct Piece {
    int64_t index;
    std::string text;
  };
  void push(Piece piece) {
    {
      const std::lock_guard lock(mutex_);
      pieces_.push_back(std::move(piece));
    }
    changed_.notify_one();
  }
  // Something else has happened: take() does not wait.
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_one();
  }
  // All there are; empty when none came for a while.
  std::deque<Piece> take() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook, [&] { return is_woken_ || !pieces_.empty(); });
    is_woken_ = false;
    return std::exchange(pieces_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  bool is_woken_ = false;
};

class CompletionStream {
 public:
  CompletionStream(std::shared_ptr<Completion> completion, std::shared_ptr<PieceQueue> queue,
                   bool has_pieces)
      : completion_(std::move(completion)), queue_(std::move(queue)), has_pieces_(has_pieces) {}

  void run(const HttpWriter& write, const std::function<bool()>& is_client_gone) {
    try {
      if (completion_->wish().echo && has_pieces_) echo(write);
      if (completion_->requests() == 0) {
        finish(completion_->prompts_only(), write, is_client_gone);
      }
      std::vector<bool> is_finished(completion_->requests());
      for (size_t left = is_finished.size(); left > 0 && is_open_;) {
        // Whether one is ready is asked before its pieces are taken, so that none comes later.
        std::vector<size_t> ready;
        for (size_t r = 0; r < is_finished.size(); ++r) {
          if (!is_finished[r] && completion_->is_ready(r)) ready.push_back(r);
        }
        for (const PieceQueue::Piece& piece : queue_->take()) {
          if (!piece.text.empty()) send(completion_->piece_json(piece.index, piece.text), write);
        }
        for (const size_t r : ready) {
          finish(completion_->take(r), write, is_client_gone);
          is_finished[r] = true, --left;
        }
        is_open_ = is_open_ && !is_client_gone();
        if (is_open_ && completion_->is_late()) throw completion_->late_error();
      }
      completion_->count();
      if (completion_->wish().include_usage) {
        Json last = completion_->whole(Json::array());
        last["usage"] = completion_->usage();
        send(last, write);
      }
    } catch (const HttpError& error) {
      send_error(error, write);
    } catch (const Error& error) {
      const bool is_late = error.code() == ErrorCode::cancelled;
      send_error(is_late ? completion_->late_error() : completion_->error_of(error), write);
    }
    if (is_open_) write("data: [DONE]\n\n");
  }

 private:
  void send(const Json& json, const HttpWriter& write) {
    if (is_open_) is_open_ = write("data: " + dump(json) + "\n\n");
  }
  void send_error(const HttpError& error, const HttpWriter& write) {
    send(error_json(error, Route::Form::openai), write);
  }

  void echo(const HttpWriter& write) {
    int64_t index = 0;
    for (const Prompt& prompt : completion_->wish().prompt.values) {
      for (int64_t i = 0; i < completion_->wish().n(); ++i) {
        send(completion_->piece_json(index++, completion_->prompt_text(prompt)), write);
      }
    }
  }

  void finish(const std::vector<Choice>& choices, const HttpWriter& write,
              const std::function<bool()>& is_client_gone) {
    const auto is_cancelled = [&] { return is_client_gone() || completion_->is_late(); };
    for (const Choice& choice : choices) {
      Json json{{"index", choice.index},
                {"text", ""},
                {"logprobs", nullptr},
                {"finish_reason", finish_name(choice.answer.finish)}};
      // With a beam texts change until the end, and log-probabilities come with the whole.
      send(completion_->whole(has_pieces_ ? json : completion_->choice_json(choice, is_cancelled)),
           write);
    }
  }

  std::shared_ptr<Completion> completion_;
  std::shared_ptr<PieceQueue> queue_;
  const bool has_pieces_;
  bool is_open_ = true;
};

HttpReply complete(Call& call) {
  auto completion = std::make_shared<Completion>(call, read_fields<CompletionCall>(call));
  const CompletionCall& wish = completion->wish();
  if (!wish.stream) return whole_completion(call, *completion);

  auto queue = std::make_shared<PieceQueue>();
  const bool has_pieces = !wish.has_beam() && !wish.logprobs && wish.max_tokens > 0;
  std::function<void(int64_t, const StreamPiece&)> on_piece;
  if (has_pieces) {
    on_piece = [queue](int64_t index, const StreamPiece& piece) {
      queue->push({index, piece.text});
    };
  }
  completion->submit(on_piece, [queue] { queue->wake(); });
  auto stream = std::make_shared<CompletionStream>(completion, queue, has_pieces);
  return {.content_type = "text/event-stream",
          .headers = {{"Cache-Control", "no-cache"}},
          .stream =
              [stream](const HttpWriter& write, const std::function<bool()>& is_client_gone) {
                stream->run(write, is_client_gone);
              },
          // Also when the client went before the first piece.
          .done = [completion](int64_t) { completion->cancel(); }};
}

Json usage_schema() {
  return schema::object({{"prompt_tokens", schema::integer()},
                         {"completion_tokens", schema::integer()},
                         {"total_tokens", schema::integer()}});
}

Json logprobs_schema() {
  const Json score = schema::number("a natural logarithm");
  return schema::object(
      {{"tokens", schema::list(schema::text())},
       {"token_logprobs", schema::list(schema::or_null(score), "null: nothing comes before it")},
       {"top_logprobs", schema::or_null(schema::list(schema::or_null(schema::map(score))))},
       {"text_offset",
        schema::list(schema::integer(), "where each begins in text, in characters")}});
}

// Of the whole, or of an event of its stream: there an answer comes in several parts.
Json completion_schema(bool is_event) {
  Json reason = schema::choice({"stop", "length"});
  if (is_event) {  // an enum has all that may come
    reason["enum"].push_back(nullptr);
    reason = schema::or_null(std::move(reason));
  }
  return schema::object(
      {{"id", schema::text()},
       {"object", schema::choice({"text_completion"})},
       {"created", schema::integer("seconds since 1970")},
       {"model", schema::text("its name")},
       {"choices", schema::list(schema::object({{"index", schema::integer("of the answer")},
                                                {"text", schema::text()},
                                                {"logprobs", schema::or_null(logprobs_schema())},
                                                {"finish_reason", std::move(reason)}}))},
       {is_event ? "usage?" : "usage", usage_schema()}});
}

// ---- /v1/embeddings ----------------------------------------------------------------------------

struct EmbeddingsCall {
  std::string model, encoding_format = "float";
  Prompts input;
};

void describe(Fields& fields, EmbeddingsCall& call) {
  fields.text({.name = "model", .about = "its name; needed where there are several"}, call.model);
  fields.prompts({.name = "input", .about = "text or token ids, or a list", .required = true},
                 call.input);
  fields.text({.name = "encoding_format",
               .about = "base64: 32-bit floats, little-endian",
               .choices = {"float", "base64"}},
              call.encoding_format);
  fields.ignored({.name = "user", .about = "not used"});
}

HttpReply embed(Call& call) {
  const auto wish = read_fields<EmbeddingsCall>(call);
  const ServedModelPtr served = call.service.model_for(call, wish.model, "embed");
  std::vector<TaskInput> inputs;
  for (const Prompt& prompt : wish.input.values) {
    inputs.push_back({.text = prompt.text, .ids = prompt.ids.value_or(std::vector<int32_t>{})});
  }
  const std::vector<Embedded> results =
      served->embedder().embed(inputs, served->embed_settings(), call.cancelled());
  Json data = Json::array();
  int64_t tokens = 0;
  for (const Embedded& result : results) {
    tokens += result.tokens;
    Json vector = result.vector;
    if (wish.encoding_format == "base64")
      vector = encode_base64(std::as_bytes(std::span(result.vector)));
    data.push_back(
        {{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(vector)}});
  }
  call.service.metrics().count_tokens(tokens, 0);
  return json_reply({{"object", "list"},
                     {"data", std::move(data)},
                     {"model", served->name()},
                     {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

Json embeddings_schema() {
  const Json vector = schema::any_of({schema::list(schema::number()), schema::text("base64")});
  return schema::object(
      {{"object", schema::choice({"list"})},
       {"data", schema::list(schema::object({{"object", schema::choice({"embedding"})},
                                             {"index", schema::integer("of the input")},
                                             {"embedding", vector}}))},
       {"model", schema::text("its name")},
       {"usage", schema::object({{"prompt_tokens", schema::integer()},
                                 {"total_tokens", schema::integer()}})}});
}

}  // namespace

void add_openai_routes(std::vector<Route>& routes) {
  routes.push_back(
      {.method = "POST",
       .path = "/v1/completions",
       .about = "What follows a prompt, as OpenAI's API has it",
       .works = true,
       .describe = described<CompletionCall>(),
       .replies = {{.schema = completion_schema(/*is_event=*/false)},
                   {.schema = schema::any_of({completion_schema(/*is_event=*/true),
                                              schema::component(error_name(Route::Form::openai))},
                                             "each event's data, but for [DONE] at the end"),
                    .type = "text/event-stream"}},
       .handle = complete});
  routes.push_back({.method = "POST",
                    .path = "/v1/embeddings",
                    .about = "Vectors of texts, as OpenAI's API has them",
                    .works = true,
                    .describe = described<EmbeddingsCall>(),
                    .replies = {{.schema = embeddings_schema()}},
                    .handle = embed});
}

}  // namespace heed::serve
