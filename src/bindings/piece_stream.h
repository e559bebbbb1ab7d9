// The text of one answer while it grows, for a thread that asks for its pieces.
//
//   PieceStream stream(engine, {.text = "Once upon a time"});
//   while (const auto piece = stream.next()) show(*piece);
//   stream.result();
//
// The engine's own callback comes on the engine's thread, where nobody may linger; what other
// languages do with a piece takes its time, and may fail. A PieceStream that goes cancels its
// request. It is one thread's at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "heed/engine.h"

namespace heed::bindings {

class PieceStream {
 public:
  // Throws what Engine::submit() does, and invalid_argument for a search whose text does not grow
  // piece by piece: with a beam, or for several answers.
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
