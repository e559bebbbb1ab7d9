// /v1/completions of OpenAI's API: whole and streamed replies.
#include <condition_variable>
#include <deque>
#include <mutex>

#include "serve/routes/completion.h"

namespace heed::serve {
namespace {

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

// Passes text from the engine's thread to the thread of the connection.
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
  // Makes take() return.
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_one();
  }
  // All queued pieces; empty on timeout.
  std::deque<Piece> take() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kClientPoll, [&] { return is_woken_ || !pieces_.empty(); });
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
      if (completion_->request().echo && has_pieces_) echo(write);
      if (completion_->requests() == 0) {
        finish(completion_->prompts_only(), write, is_client_gone);
      }
      std::vector<bool> is_finished(completion_->requests());
      for (size_t left = is_finished.size(); left > 0 && is_open_;) {
        // Readiness is checked before pieces are taken, so that no piece is sent after the end.
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
      if (completion_->request().include_usage) {
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
    for (const Prompt& prompt : completion_->request().prompt.values) {
      for (int64_t i = 0; i < completion_->request().n(); ++i) {
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
      // With a beam or logprobs the text is only known at the end.
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
  const CompletionCall& request = completion->request();
  if (!request.stream) return whole_completion(call, *completion);

  auto queue = std::make_shared<PieceQueue>();
  const bool has_pieces = !request.has_beam() && !request.logprobs && request.max_tokens > 0;
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
          // Also if the client disconnected before the first piece.
          .done = [completion](int64_t) { completion->cancel(); }};
}

Json usage_schema() {
  return schema::object({{"prompt_tokens", schema::integer()},
                         {"completion_tokens", schema::integer()},
                         {"total_tokens", schema::integer()}});
}

Json logprobs_schema() {
  const Json score = schema::number("natural logarithm");
  return schema::object(
      {{"tokens", schema::list(schema::text())},
       {"token_logprobs", schema::list(schema::or_null(score), "null: nothing comes before it")},
       {"top_logprobs", schema::or_null(schema::list(schema::or_null(schema::map(score))))},
       {"text_offset",
        schema::list(schema::integer(), "where each begins in text, in characters")}});
}

// The schema of a whole reply, or of one event of a stream.
Json completion_schema(bool is_event) {
  Json reason = schema::choice({"stop", "length"});
  if (is_event) {  // null must be listed in the enum
    reason["enum"].push_back(nullptr);
    reason = schema::or_null(std::move(reason));
  }
  return schema::object(
      {{"id", schema::text()},
       {"object", schema::choice({"text_completion"})},
       {"created", schema::integer("seconds since 1970")},
       {"model", schema::text("model name")},
       {"choices", schema::list(schema::object({{"index", schema::integer("index of the choice")},
                                                {"text", schema::text()},
                                                {"logprobs", schema::or_null(logprobs_schema())},
                                                {"finish_reason", std::move(reason)}}))},
       {"seed?", schema::integer("random seed of the samples")},
       {"truncated?", schema::flag("whether a prompt was cut")},
       {is_event ? "usage?" : "usage", usage_schema()}});
}

}  // namespace

void add_completion_routes(std::vector<Route>& routes) {
  routes.push_back(
      {.method = "POST",
       .path = "/v1/completions",
       .about = "Complete prompts (OpenAI API)",
       .works = true,
       .describe = described<CompletionCall>(),
       .replies = {{.schema = completion_schema(/*is_event=*/false)},
                   {.schema = schema::any_of({completion_schema(/*is_event=*/true),
                                              schema::component(error_name(Route::Form::openai))},
                                             "each event's data, but for [DONE] at the end"),
                    .type = "text/event-stream"}},
       .handle = complete});
}

}  // namespace heed::serve
