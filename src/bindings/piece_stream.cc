#include "bindings/piece_stream.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "heed/error.h"

namespace heed::bindings {
namespace {

constexpr std::chrono::milliseconds kCancelInterval{20};

}  // namespace

// Shared with the engine's thread.
struct PieceStream::Pieces {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> texts;
  bool done = false;
};

PieceStream::PieceStream(std::shared_ptr<Engine> engine, Request request)
    : engine_(std::move(engine)), pieces_(std::make_shared<Pieces>()) {
  const SearchOptions& search =
      request.search ? *request.search : engine_->model().search_options();
  if (search.beam > 1 || search.nbest > 1) {
    throw Error(ErrorCode::invalid_argument,
                "beam and nbest must be 1 for streaming, got beam " + std::to_string(search.beam) +
                    " and nbest " + std::to_string(search.nbest),
                "set both to 1, or request the whole text");
  }
  Callbacks callbacks;
  callbacks.piece = [pieces = pieces_](const StreamPiece& piece) {
    if (piece.text.empty()) return;
    {
      const std::lock_guard lock(pieces->mutex);
      pieces->texts.push_back(piece.text);
    }
    pieces->changed.notify_one();
  };
  callbacks.done = [pieces = pieces_] {
    {
      const std::lock_guard lock(pieces->mutex);
      pieces->done = true;
    }
    pieces->changed.notify_one();
  };
  handle_ = engine_->submit(request, std::move(callbacks));
}

PieceStream::~PieceStream() {
  if (handle_) handle_->cancel();
}

std::optional<std::string> PieceStream::next(const std::function<bool()>& is_cancelled) {
  std::unique_lock lock(pieces_->mutex);
  const auto has_news = [&] { return !pieces_->texts.empty() || pieces_->done; };
  while (!pieces_->changed.wait_for(lock, kCancelInterval, has_news)) {
    if (!is_cancelled) continue;
    lock.unlock();  // is_cancelled may take a while
    if (is_cancelled()) {
      handle_->cancel();
      throw Error(ErrorCode::cancelled, "the generation was cancelled");
    }
    lock.lock();
  }
  if (pieces_->texts.empty()) {
    lock.unlock();
    handle_->get();  // throws the request's error
    return std::nullopt;
  }
  std::string text = std::move(pieces_->texts.front());
  pieces_->texts.pop_front();
  return text;
}

}  // namespace heed::bindings
