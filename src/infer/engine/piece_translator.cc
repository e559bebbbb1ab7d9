#include "infer/engine/piece_translator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "infer/engine/output_check.h"
#include "infer/search/terms.h"

namespace heed {
namespace {

// The search of a sentence, with the terms in it as required phrases.
SearchOptions with_terms(SearchOptions search, const std::vector<Term>& terms,
                         std::string_view sentence) {
  // With fewer beams, required phrases displace the rest of the sentence.
  constexpr int kFewestBeams = 4;
  bool has_terms = false;
  for (const Term& term : terms) {
    if (!contains_words(sentence, term.source)) continue;
    search.required.push_back(term.target);
    has_terms = true;
  }
  if (has_terms) search.beam = std::max(search.beam, kFewestBeams), search.sample = false;
  return search;
}

bool contains(std::span<const int32_t> ids, const std::vector<int32_t>& phrase) {
  return !std::ranges::search(ids, phrase).empty();
}

}  // namespace

PieceTranslator::PieceTranslator(Engine& engine, const TranslateOptions& options,
                                 const SearchOptions& search, const TextSplitter& splitter)
    : engine_(engine), options_(options), search_(search), splitter_(splitter) {}

Request PieceTranslator::request(std::string_view text, const TextPiece& piece,
                                 const Place& place) const {
  const std::string_view sentence = part(text, piece.span);
  SearchOptions search = search_;
  if (!place.is_only) search.required.clear(), search.required_ids.clear();
  return {.text = options_.source_prefix + std::string(sentence),
          .prefix = place.is_first ? options_.prefix : "",
          .source_language = options_.source_language,
          .target_language = options_.target_language,
          .search = with_terms(std::move(search), options_.terms, sentence),
          .stream = place.stream,
          .truncate = Truncation::right};
}

std::vector<Result> PieceTranslator::run(std::vector<Request> requests) const {
  std::vector<Result> results(requests.size());
  engine_.run(
      std::move(requests), [&](size_t i, Result&& result) { results[i] = std::move(result); },
      options_.is_cancelled);
  return results;
}

TranslationWarning PieceTranslator::check(std::string_view text, const TranslatedPiece& piece,
                                          const Answer& answer) const {
  const bool is_limited = search_.max_new_tokens > 0 || search_.max_length > 0;
  const bool reached_maximum = answer.finish == FinishReason::length;
  return check_output({.source = part(text, piece.piece.span),
                       .target = answer.text,
                       .source_tokens = piece.result.input_tokens,
                       .target_tokens = answer.new_tokens,
                       .reached_default = reached_maximum && !is_limited,
                       .reached_requested = reached_maximum && is_limited});
}

std::vector<PieceTranslator::Place> PieceTranslator::places(std::span<const TextPiece> pieces,
                                                            uint64_t first_stream) {
  std::vector<Place> places(pieces.size());
  const auto translated = std::ranges::count(pieces, false, &TextPiece::is_copied);
  bool is_first = true;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].is_copied) continue;
    places[i] = {.stream = first_stream + i, .is_first = is_first, .is_only = translated == 1};
    is_first = false;
  }
  return places;
}

std::vector<TranslatedPiece> PieceTranslator::finish(std::string_view text,
                                                     std::vector<TranslatedPiece> pieces,
                                                     std::span<const Place> places) const {
  std::vector<TranslatedPiece> done;
  for (size_t i = 0; i < pieces.size(); ++i) repair(text, std::move(pieces[i]), places[i], done);
  const bool has_required = !search_.required.empty() || !search_.required_ids.empty();
  if (has_required && done.size() > 1) place_required(text, done);
  return done;
}

// A long piece is translated in two parts, a short one with another search: no trigram twice, and
// the best hypothesis that passes. Not for samples, which are what was asked for, nor without
// splitting, where the whole text is one piece by request.
void PieceTranslator::repair(std::string_view text, TranslatedPiece piece, const Place& place,
                             std::vector<TranslatedPiece>& done) const {
  if (!piece.piece.is_copied) piece.warning = check(text, piece, piece.result.best());
  const bool is_fixed = search_.sample || !options_.split_sentences;
  if (piece.warning == TranslationWarning::none || is_fixed) {
    done.push_back(std::move(piece));
    return;
  }
  if (const auto halves = splitter_.halves(text, piece.piece.span)) {
    std::vector<TranslatedPiece> parts(2);
    parts[0].piece.span = halves->first, parts[1].piece.span = halves->second;
    const Place half_places[] = {{.stream = place.stream, .is_first = place.is_first},
                                 {.stream = place.stream}};
    std::vector<Result> results = run({request(text, parts[0].piece, half_places[0]),
                                       request(text, parts[1].piece, half_places[1])});
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].result = std::move(results[i]);
      repair(text, std::move(parts[i]), half_places[i], done);
    }
    return;
  }
  constexpr int kTrigram = 3;
  Request again = request(text, piece.piece, place);
  SearchOptions& search = *again.search;
  if (search.no_repeat_ngram == 0) search.no_repeat_ngram = kTrigram;
  const int nbest = search.nbest;
  search.nbest = search.beam;
  Result result = std::move(run({std::move(again)}).front());
  const auto good = std::ranges::find_if(result.answers, [&](const Answer& answer) {
    return check(text, piece, answer) == TranslationWarning::none;
  });
  if (good != result.answers.end()) {
    std::rotate(result.answers.begin(), good, good + 1);
    result.answers.resize(std::min(result.answers.size(), static_cast<size_t>(nbest)));
    piece.result = std::move(result);
    piece.warning = TranslationWarning::none;
  }
  done.push_back(std::move(piece));
}

// Each phrase that the text lacks goes into the piece whose score it lowers least.
void PieceTranslator::place_required(std::string_view text,
                                     std::vector<TranslatedPiece>& pieces) const {
  std::vector<std::vector<std::string>> texts(pieces.size());  // of each piece
  std::vector<std::vector<std::vector<int32_t>>> ids(pieces.size());
  const auto is_there = [&](const auto& contains_it) {
    return std::ranges::any_of(pieces, [&](const TranslatedPiece& piece) {
      return !piece.piece.is_copied && contains_it(piece.result.best());
    });
  };
  const auto place = [&](auto& lists, const auto& phrase) {
    std::vector<Request> requests;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].piece.is_copied) continue;
      Request& request = requests.emplace_back(
          this->request(text, pieces[i].piece, {.is_first = numbers.empty()}));
      auto& search = *request.search;
      lists[i].push_back(phrase);
      search.required.insert(search.required.end(), texts[i].begin(), texts[i].end());
      search.required_ids = ids[i];
      lists[i].pop_back();
      numbers.push_back(i);
    }
    std::vector<Result> results = run(std::move(requests));
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t r = 0; r < results.size(); ++r) {
      const double cost = pieces[numbers[r]].result.best().score - results[r].best().score;
      if (cost < least) least = cost, best = r;
    }
    if (results.empty()) return;
    pieces[numbers[best]].result = std::move(results[best]);
    lists[numbers[best]].push_back(phrase);
  };
  for (const std::string& phrase : search_.required) {
    const auto has = [&](const Answer& answer) {
      return answer.text.find(phrase) != answer.text.npos;
    };
    if (!is_there(has)) place(texts, phrase);
  }
  for (const std::vector<int32_t>& phrase : search_.required_ids) {
    const auto has = [&](const Answer& answer) {
      return contains(std::span(answer.ids).last(static_cast<size_t>(answer.new_tokens)), phrase);
    };
    if (!is_there(has)) place(ids, phrase);
  }
}

}  // namespace heed
