// Translator and Generator: splits texts into sentences, and joins their translations.
#include <algorithm>
#include <chrono>
#include <span>

#include "base/check.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/translate.h"
#include "infer/markup/markup_translation.h"
#include "infer/markup/protected_text.h"
#include "infer/search/terms.h"
#include "text/unicode/sentence_splitter.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// A piece of a text, translated by one request.
struct Piece {
  size_t text;  // index
  TextSpan span;
  std::optional<ProtectedText> guarded{};  // if it has placeholders
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

std::string_view part(std::string_view text, TextSpan span) {
  return text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

// Where to cut a span in two: after the white space nearest to its middle, or in the middle without
// any; between characters.
int64_t middle_of(std::string_view text, TextSpan span) {
  const int64_t middle = (span.begin + span.end) / 2;
  int64_t best = -1, fallback = -1;
  for (int64_t at = span.begin; at < span.end;) {
    const CodePoint c = decode_utf8(text, static_cast<size_t>(at));
    const int64_t next = at + static_cast<int64_t>(c.bytes);
    if (next >= span.end) break;
    const auto nearer = [&](int64_t than) {
      return than < 0 || std::abs(next - middle) < std::abs(than - middle);
    };
    if (is_space(c.value) && nearer(best)) best = next;
    if (nearer(fallback)) fallback = next;
    at = next;
  }
  // A cut near an edge would leave the rest as long as before.
  const int64_t quarter = (span.end - span.begin) / 4;
  const bool is_central = best >= 0 && std::abs(best - middle) <= quarter;
  return is_central ? best : fallback;
}

class Splitter {
 public:
  Splitter(const Model& model, const TranslateOptions& options) : model_(model), options_(options) {
    // Reserve for language tokens and the like.
    constexpr int64_t kReserve = 4;
    const auto prefix = static_cast<int64_t>(
        options.source_prefix.empty() ? 0
                                      : model.tokenizer().encode_ids(options.source_prefix).size());
    most_tokens_ = std::max<int64_t>(model.max_positions() - kReserve - prefix, 1);
  }

  // Sentences with nothing but `spans`, which are protected, are not translated.
  void split(std::string_view text, const std::vector<TextSpan>& spans, size_t index,
             std::vector<Piece>& pieces) {
    std::vector<TextSpan> sentences = split_sentences(text);
    if (!options_.split_sentences && !sentences.empty()) {
      sentences = {{0, static_cast<int64_t>(text.size())}};
    }
    for (const TextSpan span : joined(sentences, spans)) {
      const std::vector<TextSpan> inside = relative_spans(spans, span);
      if (!inside.empty() && !has_words_outside(part(text, span), inside)) continue;
      if (options_.split_sentences) {
        add(text, spans, span, index, pieces);
      } else {
        push(text, spans, span, index, pieces);
      }
    }
  }

 private:
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
    if (!placeholder_pieces_) placeholder_pieces_ = placeholder_pieces(model_.tokenizer());
    using Method = ProtectedText::Method;
    piece.guarded.emplace(part(text, span), std::move(inside),
                          *placeholder_pieces_ > 0 ? Method::pieces : Method::kept,
                          *placeholder_pieces_);
  }

  void add(std::string_view text, const std::vector<TextSpan>& spans, TextSpan span, size_t index,
           std::vector<Piece>& pieces) {
    // A token has at least one byte: most sentences fit without being tokenized.
    const bool fits =
        span.end - span.begin < most_tokens_ || count(part(text, span)) <= most_tokens_;
    const int64_t middle = fits ? -1 : outside_of(spans, middle_of(text, span), span);
    if (middle < 0) {
      push(text, spans, span, index, pieces);
      return;
    }
    add(text, spans, {span.begin, middle}, index, pieces);
    add(text, spans, {middle, span.end}, index, pieces);
  }

  // A place to cut that is not inside of a protected span; -1: there is none.
  static int64_t outside_of(const std::vector<TextSpan>& spans, int64_t at, TextSpan outer) {
    const auto after = std::ranges::lower_bound(spans, at, {}, &TextSpan::begin);
    if (after == spans.begin() || std::prev(after)->end <= at) return at;
    const TextSpan inside = *std::prev(after);
    if (inside.end < outer.end) return inside.end;
    return inside.begin > outer.begin ? inside.begin : -1;
  }

  int64_t count(std::string_view text) const {
    // So long a text cannot fit; tokenizing it at every split would be slow.
    constexpr int64_t kMostBytesPerToken = 64;
    if (static_cast<int64_t>(text.size()) > kMostBytesPerToken * most_tokens_) {
      return most_tokens_ + 1;
    }
    return static_cast<int64_t>(model_.tokenizer().encode_ids(text).size());
  }

  const Model& model_;
  const TranslateOptions& options_;
  int64_t most_tokens_;
  std::optional<int> placeholder_pieces_;  // of the vocabulary; not set: not needed yet
};

// Where the protected spans of a piece are, in each of its answers.
using Placed = std::vector<std::vector<TextSpan>>;

// A translation, assembled from its pieces in order.
class Assembly {
 public:
  Assembly(const PlainText& source, const TranslateOptions& options, size_t pieces, int nbest)
      : source_(source.text),
        fixed_(source.fixed),
        prefix_bytes_(static_cast<int64_t>(options.source_prefix.size())) {
    const size_t ranks = pieces > 0 ? static_cast<size_t>(nbest) : 1;
    translation().alternatives.resize(ranks), translation().scores.resize(ranks);
    result_.alignments.resize(ranks), result_.placed.resize(ranks);
  }

  void add(const Piece& piece, Result&& result, const Placed& placed) {
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

  // Appends what is not translated, up to `end`: white space, and sentences of nothing but
  // placeholders. A sentence cut into pieces gets a space between them: the source's space is at the
  // end of a piece, and translations end without one.
  void between(int64_t end) {
    std::string_view space = part(source_, {at_, end});
    if (space.empty() && at_ > 0 && end < static_cast<int64_t>(source_.size()) &&
        source_[static_cast<size_t>(at_ - 1)] == ' ') {
      space = " ";
    }
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
        search_(options.search ? *options.search : Translator::default_search(engine.model())) {}

  void run(const OnPlain& on_result) {
    Splitter splitter(engine_.model(), options_);
    std::vector<size_t> counts;  // pieces of each text
    for (size_t i = 0; i < texts_.size(); ++i) {
      const PlainText& text = texts_[i];
      const size_t before = pieces_.size();
      splitter.split(text.text, protected_spans(text.text, text.fixed, text.cuts), i, pieces_);
      counts.push_back(pieces_.size() - before);
    }
    std::vector<Request> requests;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const std::optional<ProtectedText>& guarded = pieces_[i].guarded;
      requests.push_back(request_of(i, guarded
                                           ? std::string_view(guarded->masked())
                                           : part(texts_[pieces_[i].text].text, pieces_[i].span)));
    }
    size_t next = 0;  // text to return
    std::optional<Assembly> assembly;
    const auto begin = [&] {
      if (next < texts_.size())
        assembly.emplace(texts_[next], options_, counts[next], search_.nbest);
    };
    // Returns complete texts: the current one, and those after it without pieces.
    const auto return_complete = [&](size_t done) {
      while (next < texts_.size() && done == counts[next]) {
        PlainTranslation result = std::move(*assembly).take(search_.alignments);
        result.translation.terms =
            used_terms(texts_[next].text, result.translation.text, options_.terms);
        on_result(next++, std::move(result));
        begin();
        done = 0;
      }
    };
    begin();
    return_complete(0);
    size_t done = 0;  // pieces of the current text
    const auto on_sentence = [&](size_t i, Result&& result) {
      Placed placed;
      if (pieces_[i].guarded) placed = restore(i, result);
      assembly->add(pieces_[i], std::move(result), placed);
      if (++done < counts[next]) return;
      return_complete(done);
      done = 0;
    };
    engine_.run(std::move(requests), on_sentence, options_.is_cancelled);
  }

 private:
  Request request_of(size_t i, std::string_view sentence) const {
    const Piece& piece = pieces_[i];
    const PlainText& text = texts_[piece.text];
    const bool first = i == 0 || pieces_[i - 1].text != piece.text;
    Request request{.text = options_.source_prefix + std::string(sentence),
                    .prefix = first && text.takes_prefix ? options_.prefix : "",
                    .source_language = options_.source_language,
                    .target_language = options_.target_language,
                    .search = with_terms(search_, options_.terms, sentence),
                    .stream = i,
                    .may_truncate = true};
    request.search->alignments =
        search_.alignments || text.needs_alignments || piece.guarded.has_value();
    return request;
  }

  // Puts the placeholders back into the answers, and returns where they are.
  Placed restore(size_t i, Result& result) {
    if (std::optional<Placed> placed = try_restore(*pieces_[i].guarded, result)) return *placed;
    // The model did not copy them: the sentence without them.
    ProtectedText& guarded = *pieces_[i].guarded;
    guarded = ProtectedText(guarded.text(), guarded.spans(), ProtectedText::Method::removed);
    const Handle handle = engine_.submit(request_of(i, guarded.masked()));
    while (options_.is_cancelled && !handle.wait_for(kCancelInterval)) {
      if (!options_.is_cancelled()) continue;
      handle.cancel();
      throw Error(ErrorCode::cancelled, "the requests were cancelled");
    }
    const bool truncated = result.truncated;
    result = handle.get();
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

  static constexpr std::chrono::milliseconds kCancelInterval{20};

  Engine& engine_;
  const std::vector<PlainText>& texts_;
  const TranslateOptions& options_;
  const SearchOptions search_;
  std::vector<Piece> pieces_;
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
