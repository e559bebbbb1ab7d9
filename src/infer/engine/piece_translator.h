// Translates the pieces of one text again where the first result is degenerate, and places required
// phrases once a text.
//
// Every decision depends on the text alone, so that results stay independent of the batch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/engine.h"
#include "infer/engine/text_pieces.h"

namespace heed {

struct TranslatedPiece {
  TextPiece piece{};
  Result result{};
  TranslationWarning warning = TranslationWarning::none;
};

class PieceTranslator {
 public:
  // Borrows all.
  PieceTranslator(Engine& engine, const TranslateOptions& options, const SearchOptions& search,
                  const TextSplitter& splitter);

  struct Place {
    uint64_t stream = 0;
    bool is_first = false;  // of its text: TranslateOptions::prefix belongs here
    bool is_only = false;   // its text has no other: required phrases belong here
  };
  // The place of each piece; copied ones do not count.
  static std::vector<Place> places(std::span<const TextPiece> pieces, uint64_t first_stream);
  Request request(std::string_view text, const TextPiece& piece, const Place& place) const;

  // Repairs the results of a text's pieces, which were requested at these places.
  std::vector<TranslatedPiece> finish(std::string_view text, std::vector<TranslatedPiece> pieces,
                                      std::span<const Place> places) const;

 private:
  TranslationWarning check(std::string_view text, const TranslatedPiece& piece,
                           const Answer& answer) const;
  void repair(std::string_view text, TranslatedPiece piece, const Place& place,
              std::vector<TranslatedPiece>& done) const;
  void place_required(std::string_view text, std::vector<TranslatedPiece>& pieces) const;
  std::vector<Result> run(std::vector<Request> requests) const;

  Engine& engine_;
  const TranslateOptions& options_;
  const SearchOptions& search_;  // with the required phrases of the whole text
  const TextSplitter& splitter_;
};

}  // namespace heed
