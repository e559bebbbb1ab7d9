// Streams one answer to a thread that pulls its pieces.
//
//   PieceStream stream(engine, {.text = "Once upon a time"});
//   while (const auto piece = stream.next()) show(*piece);
//   stream.result();
//
// The engine calls back on its worker's thread, which must not be blocked; code of another language
// may be slow, and may fail. Destroying a PieceStream cancels its request. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "heed/engine.h"

namespace heed::bindings {

class PieceStream {
 public:
  // Throws the errors of Engine::submit(), and invalid_argument for a search that cannot be
  // streamed: with a beam, or for several answers.
  PieceStream(std::shared_ptr<Engine> engine, Request request);
  ~PieceStream();
  PieceStream(const PieceStream&) = delete;
  PieceStream& operator=(const PieceStream&) = delete;

  // Waits; never empty, and nothing after the last. Throws the request's error. `is_cancelled`, if
  // given, is asked every now and then: true ends it with the error cancelled.
  std::optional<std::string> next(const std::function<bool()>& is_cancelled = {});
  // Waits for the end.
  Result result() const { return handle_->get(); }

 private:
  struct Pieces;

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Pieces> pieces_;
  std::optional<Handle> handle_;
};

}  // namespace heed::bindings
