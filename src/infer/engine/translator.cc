// Translator and Generator: splits texts into sentences, and joins their translations.
#include <algorithm>
#include <limits>
#include <span>

#include "base/check.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/translate.h"
#include "infer/engine/output_check.h"
#include "infer/engine/text_pieces.h"
#include "infer/markup/markup_translation.h"
#include "infer/markup/protected_text.h"
#include "infer/search/terms.h"
#include "text/unicode/sentence_splitter.h"

namespace heed {
namespace {

// A piece of a text, translated by one request.
struct Piece {
  size_t text;  // index
  TextSpan span;
  std::optional<ProtectedText> guarded{};  // if it has placeholders
  uint64_t stream = 0;
  bool is_first = false;  // of its text: TranslateOptions::prefix belongs here
  bool is_only = false;   // its text has no other: required phrases belong here
};

// The spans inside of `outer`; each is inside or outside.
std::span<const TextSpan> spans_in(const std::vector<TextSpan>& spans, TextSpan outer) {
  const auto begin = std::ranges::lower_bound(spans, outer.begin, {}, &TextSpan::begin);
  const auto end = std::ranges::lower_bound(spans, outer.end, {}, &TextSpan::begin);
  return {begin, end};
}
// The same, as bytes of `outer`.
std::vector<TextSpan> relative_spans(const std::vector<TextSpan>& spans, TextSpan outer) {
  std::vector<TextSpan> inside;
  for (const TextSpan& span : spans_in(spans, outer)) {
    inside.push_back({span.begin - outer.begin, span.end - outer.begin});
  }
  return inside;
}

class Splitter {
 public:
  Splitter(const Model& model, const TranslateOptions& options)
      : model_(model), options_(options), limits_(model, options) {}

  // Neighbours are joined only where the vocabulary has no piece for each.
  std::vector<TextSpan> protected_spans_of(const PlainText& text) {
    std::vector<TextSpan> spans = protected_spans(text.text, text.fixed, text.cuts);
    if (spans.empty() || pieces_of_placeholders() == 0) return spans;
    return protected_spans(text.text, text.fixed, text.cuts, /*join_neighbours=*/false);
  }

  // Sentences with nothing but `spans`, which are protected, are not translated, nor are data.
  void split(std::string_view text, const std::vector<TextSpan>& spans, size_t index,
             std::vector<Piece>& pieces) {
    std::vector<TextSpan> sentences = split_sentences(text);
    if (!options_.split_sentences && !sentences.empty()) {
      sentences = {{0, static_cast<int64_t>(text.size())}};
    }
    for (const TextSpan span : joined(sentences, spans)) {
      if (!options_.split_sentences) {
        if (has_words(text, spans, span)) push(text, spans, span, index, pieces);
        continue;
      }
      TextSpan rest = span;
      for (TextSpan data; find_data_outside(text, spans, rest, data);) {
        add(text, spans, trimmed(text, {rest.begin, data.begin}), index, pieces);
        rest = trimmed(text, {data.end, rest.end});
      }
      add(text, spans, rest, index, pieces);
    }
  }

  // The two halves of a piece whose translation failed, or none if it is too short.
  std::vector<Piece> halves(std::string_view text, const std::vector<TextSpan>& spans,
                            const Piece& piece) {
    std::vector<Piece> pieces;
    if (!limits_.can_halve(part(text, piece.span))) return pieces;
    const int64_t cut = outside_of(spans, find_cut(text, piece.span), piece.span);
    if (cut <= piece.span.begin || cut >= piece.span.end) return pieces;
    for (const TextSpan half :
         {trimmed(text, {piece.span.begin, cut}), trimmed(text, {cut, piece.span.end})}) {
      if (has_words(text, spans, half)) push(text, spans, half, piece.text, pieces);
    }
    for (Piece& half : pieces) half.stream = piece.stream;
    if (!pieces.empty()) pieces.front().is_first = piece.is_first;
    return pieces;
  }

 private:
  static bool has_words(std::string_view text, const std::vector<TextSpan>& spans, TextSpan span) {
    if (span.begin == span.end) return false;
    const std::vector<TextSpan> inside = relative_spans(spans, span);
    return inside.empty() || has_words_outside(part(text, span), inside);
  }

  // Data that does not begin or end inside of a protected span.
  static bool find_data_outside(std::string_view text, const std::vector<TextSpan>& spans,
                                TextSpan span, TextSpan& data) {
    const std::optional<TextSpan> found = find_data(text, span);
    if (!found) return false;
    data = *found;
    return outside_of(spans, data.begin, span) == data.begin &&
           outside_of(spans, data.end, span) == data.end;
  }

  // A URL may have what ends a sentence: "/?q=1".
  static std::vector<TextSpan> joined(const std::vector<TextSpan>& sentences,
                                      const std::vector<TextSpan>& spans) {
    std::vector<TextSpan> result;
    for (const TextSpan& sentence : sentences) {
      const auto after = std::ranges::upper_bound(spans, sentence.begin, {}, &TextSpan::begin);
      const bool begins_inside = after != spans.begin() && std::prev(after)->end > sentence.begin &&
                                 !result.empty() && std::prev(after)->begin < result.back().end;
      if (begins_inside) {
        result.back().end = sentence.end;
      } else {
        result.push_back(sentence);
      }
    }
    return result;
  }

  void push(std::string_view text, const std::vector<TextSpan>& spans, TextSpan span, size_t index,
            std::vector<Piece>& pieces) {
    Piece& piece = pieces.emplace_back(Piece{index, span});
    std::vector<TextSpan> inside = relative_spans(spans, span);
    if (inside.empty()) return;
    using Method = ProtectedText::Method;
    const int numbered = pieces_of_placeholders();
    piece.guarded.emplace(part(text, span), std::move(inside),
                          numbered > 0 ? Method::pieces : Method::kept, numbered);
  }

  int pieces_of_placeholders() {
    if (!placeholder_pieces_) placeholder_pieces_ = placeholder_pieces(model_.tokenizer());
    return *placeholder_pieces_;
  }

  void add(std::string_view text, const std::vector<TextSpan>& spans, TextSpan span, size_t index,
           std::vector<Piece>& pieces) {
    if (!has_words(text, spans, span)) return;
    const int64_t cut =
        limits_.fits(part(text, span)) ? -1 : outside_of(spans, find_cut(text, span), span);
    if (cut <= span.begin || cut >= span.end) {
      push(text, spans, span, index, pieces);
      return;
    }
    add(text, spans, trimmed(text, {span.begin, cut}), index, pieces);
    add(text, spans, trimmed(text, {cut, span.end}), index, pieces);
  }

  // A place to cut that is not inside of a protected span; -1: there is none.
  static int64_t outside_of(const std::vector<TextSpan>& spans, int64_t at, TextSpan outer) {
    const auto after = std::ranges::lower_bound(spans, at, {}, &TextSpan::begin);
    if (after == spans.begin() || std::prev(after)->end <= at) return at;
    const TextSpan inside = *std::prev(after);
    if (inside.end < outer.end) return inside.end;
    return inside.begin > outer.begin ? inside.begin : -1;
  }

  const Model& model_;
  const TranslateOptions& options_;
  PieceLimits limits_;
  std::optional<int> placeholder_pieces_;  // of the vocabulary; not set: not needed yet
};

// Where the protected spans of a piece are, in each of its answers.
using Placed = std::vector<std::vector<TextSpan>>;

// A piece with its translation, after its placeholders are back.
struct TranslatedPiece {
  Piece piece;
  Result result{};
  Placed placed{};
  TranslationWarning warning = TranslationWarning::none;
};

// A translation, assembled from its pieces in order.
class Assembly {
 public:
  Assembly(const PlainText& source, const TranslateOptions& options, int nbest)
      : source_(source.text),
        fixed_(source.fixed),
        prefix_bytes_(static_cast<int64_t>(options.source_prefix.size())) {
    const auto ranks = static_cast<size_t>(nbest);
    translation().alternatives.resize(ranks), translation().scores.resize(ranks);
    result_.alignments.resize(ranks), result_.placed.resize(ranks);
  }

  void add(const TranslatedPiece& translated) {
    const auto& [piece, result, placed, warning] = translated;
    if (translation().warning == TranslationWarning::none) translation().warning = warning;
    between(piece.span.begin);
    at_ = piece.span.end;
    // As many alternatives as the sentence with the fewest.
    const size_t ranks = std::min(translation().alternatives.size(), result.answers.size());
    translation().alternatives.resize(ranks), translation().scores.resize(ranks);
    result_.alignments.resize(ranks), result_.placed.resize(ranks);
    for (size_t i = 0; i < ranks; ++i) {
      std::string& text = translation().alternatives[i];
      const auto target = static_cast<int64_t>(text.size());
      for (Alignment alignment : result.answers[i].alignments) {
        // Alignments to the source prefix are not part of the text.
        if (alignment.source.end <= prefix_bytes_) continue;
        const int64_t shift = piece.span.begin - prefix_bytes_;
        alignment.source.begin = std::max(alignment.source.begin, prefix_bytes_) + shift;
        alignment.source.end += shift;
        alignment.target.begin += target, alignment.target.end += target;
        result_.alignments[i].push_back(alignment);
      }
      if (piece.guarded) add_placed(piece, placed[i], target, result_.placed[i]);
      text += result.answers[i].text;
      translation().scores[i] += result.answers[i].score;
    }
    ++translation().sentences;
    translation().truncated = translation().truncated || result.truncated;
  }

  PlainTranslation take(bool alignments) && {
    between(static_cast<int64_t>(source_.size()));
    translation().text = translation().alternatives.front();
    if (alignments) translation().alignments = result_.alignments.front();
    return std::move(result_);
  }

 private:
  Translation& translation() { return result_.translation; }

  // The fixed parts inside of the piece's protected spans.
  void add_placed(const Piece& piece, const std::vector<TextSpan>& placed, int64_t target,
                  std::vector<TextSpan>& result) const {
    const std::vector<TextSpan>& spans = piece.guarded->spans();
    for (const TextSpan& fixed : spans_in(fixed_, piece.span)) {
      const int64_t begin = fixed.begin - piece.span.begin;
      const auto after = std::ranges::upper_bound(spans, begin, {}, &TextSpan::begin);
      HEED_CHECK(after != spans.begin(), "translation: a fixed part must be protected");
      const TextSpan& span = *std::prev(after);
      const TextSpan& at = placed[static_cast<size_t>(std::prev(after) - spans.begin())];
      const int64_t first = target + at.begin + begin - span.begin;
      result.push_back({first, first + fixed.end - fixed.begin});
    }
  }

  // Appends what is not translated, up to `end`: white space, data, and sentences of nothing but
  // placeholders.
  void between(int64_t end) {
    const std::string_view space = part(source_, {at_, end});
    for (size_t i = 0; i < result_.placed.size(); ++i) {
      std::string& text = translation().alternatives[i];
      for (const TextSpan& fixed : spans_in(fixed_, {at_, end})) {
        const int64_t shift = static_cast<int64_t>(text.size()) - at_;
        result_.placed[i].push_back({fixed.begin + shift, fixed.end + shift});
      }
      text += space;
    }
  }

  std::string_view source_;
  const std::vector<TextSpan>& fixed_;
  int64_t prefix_bytes_;
  int64_t at_ = 0;
  PlainTranslation result_;
};

}  // namespace

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

std::vector<Translation::UsedTerm> used_terms(std::string_view source, const std::string& text,
                                              const std::vector<Term>& terms) {
  std::vector<Translation::UsedTerm> list;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!contains_words(source, terms[i].source)) continue;
    list.push_back({.term = i, .used = text.find(terms[i].target) != std::string::npos});
  }
  return list;
}

Model checked(Model model) {
  if (!model.has_source()) {
    throw Error(ErrorCode::unsupported,
                "a model of family " + model.family() + " does not translate",
                "this needs an encoder_decoder model; a decoder_only one can generate");
  }
  model.tokenizer();  // throws if there is none
  return model;
}

}  // namespace

Translator::Translator(Model model, const EngineOptions& options)
    : engine_(std::make_shared<Engine>(checked(std::move(model)), options)) {}

Translator::Translator(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {
  checked(engine_->model());
}

SearchOptions Translator::default_search(const Model& model) {
  SearchOptions search = model.search_options();
  if (!model.has_setting("num_beams")) search.beam = kTranslationBeam;
  if (!model.has_setting("length_penalty")) search.length_penalty = kTranslationLengthPenalty;
  return search;
}

Translation Translator::translate(std::string_view text, const TranslateOptions& options) {
  Translation result;
  translate({std::string(text)}, options,
            [&](size_t, Translation&& translation) { result = std::move(translation); });
  return result;
}

namespace {

// The requests of plain texts.
class PlainTranslator {
 public:
  PlainTranslator(Engine& engine, const std::vector<PlainText>& texts,
                  const TranslateOptions& options)
      : engine_(engine),
        texts_(texts),
        options_(options),
        search_(options.search ? *options.search : Translator::default_search(engine.model())),
        splitter_(engine.model(), options) {}

  void run(const OnPlain& on_result) {
    std::vector<Piece> pieces;
    std::vector<size_t> counts;  // pieces of each text
    for (size_t i = 0; i < texts_.size(); ++i) {
      const PlainText& text = texts_[i];
      const size_t before = pieces.size();
      spans_.push_back(splitter_.protected_spans_of(text));
      splitter_.split(text.text, spans_.back(), i, pieces);
      counts.push_back(pieces.size() - before);
      if (counts.back() > 0) pieces[before].is_first = true;
      if (counts.back() == 1) pieces[before].is_only = true;
    }
    std::vector<Request> requests;
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].stream = i;
      requests.push_back(request_of(pieces[i]));
    }
    size_t next = 0;  // text to return
    std::vector<TranslatedPiece> done;
    const auto return_complete = [&](size_t count) {
      while (next < texts_.size() && count == counts[next]) {
        place_required(done);
        Assembly assembly(texts_[next], options_, search_.nbest);
        for (const TranslatedPiece& piece : done) assembly.add(piece);
        PlainTranslation result = std::move(assembly).take(search_.alignments);
        if (is_random(search_)) result.translation.seed = search_.seed;
        result.translation.terms =
            used_terms(texts_[next].text, result.translation.text, options_.terms);
        on_result(next++, std::move(result));
        done.clear(), count = 0;
      }
      return count;
    };
    size_t count = return_complete(0);  // pieces of the current text
    const auto on_sentence = [&](size_t i, Result&& result) {
      repair(std::move(pieces[i]), std::move(result), done);
      count = return_complete(count + 1);
    };
    engine_.run(std::move(requests), on_sentence, options_.is_cancelled);
  }

 private:
  std::string_view sentence_of(const Piece& piece) const {
    return piece.guarded ? std::string_view(piece.guarded->masked())
                         : part(texts_[piece.text].text, piece.span);
  }

  Request request_of(const Piece& piece) const {
    const PlainText& text = texts_[piece.text];
    const std::string_view sentence = sentence_of(piece);
    SearchOptions search = search_;
    if (!piece.is_only) search.required.clear(), search.required_ids.clear();
    Request request{.text = options_.source_prefix + std::string(sentence),
                    .prefix = piece.is_first && text.takes_prefix ? options_.prefix : "",
                    .source_language = options_.source_language,
                    .target_language = options_.target_language,
                    .search = with_terms(std::move(search), options_.terms, sentence),
                    .stream = piece.stream,
                    .truncate = Truncation::right};
    request.search->alignments =
        search_.alignments || text.needs_alignments || piece.guarded.has_value();
    return request;
  }

  std::vector<Result> results_of(std::vector<Request> requests) const {
    std::vector<Result> results(requests.size());
    engine_.run(
        std::move(requests), [&](size_t i, Result&& result) { results[i] = std::move(result); },
        options_.is_cancelled);
    return results;
  }

  TranslationWarning check(const Piece& piece, const Answer& answer, int64_t input_tokens) const {
    const bool is_limited = search_.max_new_tokens > 0 || search_.max_length > 0;
    const bool reached_maximum = answer.finish == FinishReason::length;
    return check_output({.source = sentence_of(piece),
                         .target = answer.text,
                         .source_tokens = input_tokens,
                         .target_tokens = answer.new_tokens,
                         .reached_default = reached_maximum && !is_limited,
                         .reached_requested = reached_maximum && is_limited});
  }

  // Appends a piece with its translation. If that is degenerate, a long piece is translated in two
  // parts, a short one with another search: no trigram twice, and the best hypothesis that passes.
  // Not for samples, which are what was asked for, nor without splitting, where the whole text is one
  // piece by request.
  void repair(Piece piece, Result result, std::vector<TranslatedPiece>& done) {
    TranslationWarning warning = check(piece, result.best(), result.input_tokens);
    if (warning != TranslationWarning::none && !search_.sample && options_.split_sentences) {
      std::vector<Piece> halves =
          splitter_.halves(texts_[piece.text].text, spans_[piece.text], piece);
      if (!halves.empty()) {
        std::vector<Request> requests;
        for (const Piece& half : halves) requests.push_back(request_of(half));
        std::vector<Result> results = results_of(std::move(requests));
        for (size_t i = 0; i < halves.size(); ++i) {
          repair(std::move(halves[i]), std::move(results[i]), done);
        }
        return;
      }
      if (search_again(piece, result)) warning = TranslationWarning::none;
    }
    Placed placed;
    if (piece.guarded) placed = restore(piece, result);
    done.push_back({std::move(piece), std::move(result), std::move(placed), warning});
  }

  // Whether it found an answer that is not degenerate.
  bool search_again(const Piece& piece, Result& result) const {
    constexpr int kTrigram = 3;
    Request request = request_of(piece);
    SearchOptions& search = *request.search;
    if (search.no_repeat_ngram == 0) search.no_repeat_ngram = kTrigram;
    const auto nbest = static_cast<size_t>(search.nbest);
    search.nbest = search.beam;
    Result again = std::move(results_of({std::move(request)}).front());
    const auto good = std::ranges::find_if(again.answers, [&](const Answer& answer) {
      return check(piece, answer, again.input_tokens) == TranslationWarning::none;
    });
    if (good == again.answers.end()) return false;
    std::rotate(again.answers.begin(), good, good + 1);
    again.answers.resize(std::min(again.answers.size(), nbest));
    result = std::move(again);
    return true;
  }

  // Each required phrase that a text of several pieces lacks goes into the piece whose score it lowers
  // least. That of a single piece has them already.
  void place_required(std::vector<TranslatedPiece>& pieces) {
    if (pieces.size() < 2) return;
    std::vector<std::vector<std::string>> texts(pieces.size());
    std::vector<std::vector<std::vector<int32_t>>> ids(pieces.size());
    const auto place = [&](auto& lists, const auto& phrase) {
      std::vector<Request> requests;
      for (size_t i = 0; i < pieces.size(); ++i) {
        SearchOptions& search = *requests.emplace_back(request_of(pieces[i].piece)).search;
        lists[i].push_back(phrase);
        search.required.insert(search.required.end(), texts[i].begin(), texts[i].end());
        search.required_ids = ids[i];
        lists[i].pop_back();
      }
      std::vector<Result> results = results_of(std::move(requests));
      size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < results.size(); ++i) {
        const double cost = pieces[i].result.best().score - results[i].best().score;
        if (cost < least) least = cost, best = i;
      }
      TranslatedPiece& chosen = pieces[best];
      chosen.result = std::move(results[best]);
      if (chosen.piece.guarded) chosen.placed = restore(chosen.piece, chosen.result);
      lists[best].push_back(phrase);
    };
    const auto lacks = [&](const auto& is_in) {
      return std::ranges::none_of(
          pieces, [&](const TranslatedPiece& piece) { return is_in(piece.result.best()); });
    };
    for (const std::string& phrase : search_.required) {
      const auto is_in = [&](const Answer& a) { return a.text.find(phrase) != a.text.npos; };
      if (lacks(is_in)) place(texts, phrase);
    }
    for (const std::vector<int32_t>& phrase : search_.required_ids) {
      const auto is_in = [&](const Answer& a) {
        const auto new_ids = std::span(a.ids).last(static_cast<size_t>(a.new_tokens));
        return std::search(new_ids.begin(), new_ids.end(), phrase.begin(), phrase.end()) !=
               new_ids.end();
      };
      if (lacks(is_in)) place(ids, phrase);
    }
  }

  // Puts the placeholders back into the answers, and returns where they are.
  Placed restore(Piece& piece, Result& result) {
    if (std::optional<Placed> placed = try_restore(*piece.guarded, result)) return *placed;
    // The model did not copy them: the sentence without them.
    ProtectedText& guarded = *piece.guarded;
    guarded = ProtectedText(guarded.text(), guarded.spans(), ProtectedText::Method::removed);
    const bool truncated = result.truncated;
    result = std::move(results_of({request_of(piece)}).front());
    result.truncated = result.truncated || truncated;
    std::optional<Placed> placed = try_restore(guarded, result);
    HEED_CHECK(placed.has_value(), "translation: placeholders that were removed must be restored");
    return *placed;
  }

  std::optional<Placed> try_restore(const ProtectedText& guarded, Result& result) const {
    const auto prefix = static_cast<int64_t>(options_.source_prefix.size());
    Placed placed;
    std::vector<ProtectedText::Restored> restored;
    for (const Answer& answer : result.answers) {
      std::vector<Alignment> alignments;
      for (Alignment alignment : answer.alignments) {
        if (alignment.source.end <= prefix) continue;
        alignment.source.begin = std::max(alignment.source.begin, prefix) - prefix;
        alignment.source.end -= prefix;
        alignments.push_back(alignment);
      }
      std::optional<ProtectedText::Restored> one = guarded.restore(answer.text, alignments);
      if (!one) return std::nullopt;
      restored.push_back(std::move(*one));
    }
    for (size_t i = 0; i < restored.size(); ++i) {
      result.answers[i].text = std::move(restored[i].text);
      result.answers[i].alignments = std::move(restored[i].alignments);
      for (Alignment& alignment : result.answers[i].alignments) {
        alignment.source.begin += prefix, alignment.source.end += prefix;
      }
      placed.push_back(std::move(restored[i].placed));
    }
    return placed;
  }

  Engine& engine_;
  const std::vector<PlainText>& texts_;
  const TranslateOptions& options_;
  const SearchOptions search_;  // with the required phrases of whole texts
  Splitter splitter_;
  std::vector<std::vector<TextSpan>> spans_;  // of each text: those that are protected
};

}  // namespace

void Translator::translate(const std::vector<std::string>& texts, const TranslateOptions& options,
                           const std::function<void(size_t, Translation&&)>& on_result) {
  if (options.format != TextFormat::text) {
    translate_markup(
        texts, options,
        [&](const std::vector<PlainText>& plain, const OnPlain& on_plain) {
          PlainTranslator(*engine_, plain, options).run(on_plain);
        },
        on_result);
    return;
  }
  std::vector<PlainText> plain;
  for (const std::string& text : texts) plain.push_back({.text = text});
  PlainTranslator(*engine_, plain, options).run([&](size_t i, PlainTranslation&& result) {
    on_result(i, std::move(result.translation));
  });
}

Generator::Generator(Model model, const EngineOptions& options) {
  model.tokenizer();  // throws if there is none
  engine_ = std::make_unique<Engine>(std::move(model), options);
}

Answer Generator::generate(std::string_view prompt, std::optional<SearchOptions> search) {
  Result result = engine_->submit({.text = std::string(prompt), .search = std::move(search)}).get();
  return std::move(result.answers.front());
}

}  // namespace heed
