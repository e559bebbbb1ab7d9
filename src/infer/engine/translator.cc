// Translator and Generator: splits texts into sentences, and joins their translations.
#include <algorithm>

#include "heed/engine.h"
#include "heed/error.h"
#include "heed/translate.h"
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
};

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

  void split(std::string_view text, size_t index, std::vector<Piece>& pieces) const {
    if (!options_.split_sentences) {
      if (!split_sentences(text).empty()) {
        pieces.push_back({index, {0, static_cast<int64_t>(text.size())}});
      }
      return;
    }
    for (const TextSpan span : split_sentences(text)) add(text, span, index, pieces);
  }

 private:
  void add(std::string_view text, TextSpan span, size_t index, std::vector<Piece>& pieces) const {
    // A token has at least one byte: most sentences fit without being tokenized.
    const bool fits =
        span.end - span.begin < most_tokens_ || count(part(text, span)) <= most_tokens_;
    const int64_t middle = fits ? -1 : middle_of(text, span);
    if (middle < 0) {
      pieces.push_back({index, span});
      return;
    }
    add(text, {span.begin, middle}, index, pieces);
    add(text, {middle, span.end}, index, pieces);
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
};

// A translation, assembled from its pieces in order.
class Assembly {
 public:
  Assembly(std::string_view source, const TranslateOptions& options, size_t pieces, int nbest)
      : source_(source), prefix_bytes_(static_cast<int64_t>(options.source_prefix.size())) {
    result_.alternatives.resize(pieces > 0 ? static_cast<size_t>(nbest) : 1);
    result_.scores.resize(result_.alternatives.size());
  }

  void add(const Piece& piece, Result&& result) {
    between(piece.span.begin);
    at_ = piece.span.end;
    // As many alternatives as the sentence with the fewest.
    const size_t ranks = std::min(result_.alternatives.size(), result.answers.size());
    result_.alternatives.resize(ranks), result_.scores.resize(ranks);
    const auto target = static_cast<int64_t>(result_.alternatives.front().size());
    for (Alignment alignment : result.best().alignments) {
      // Alignments to the source prefix are not part of the text.
      if (alignment.source.end <= prefix_bytes_) continue;
      const int64_t shift = piece.span.begin - prefix_bytes_;
      alignment.source.begin = std::max(alignment.source.begin, prefix_bytes_) + shift;
      alignment.source.end += shift;
      alignment.target.begin += target, alignment.target.end += target;
      result_.alignments.push_back(alignment);
    }
    for (size_t i = 0; i < ranks; ++i) {
      result_.alternatives[i] += result.answers[i].text;
      result_.scores[i] += result.answers[i].score;
    }
    ++result_.sentences;
    result_.truncated = result_.truncated || result.truncated;
  }

  Translation take() && {
    between(static_cast<int64_t>(source_.size()));
    result_.text = result_.alternatives.front();
    return std::move(result_);
  }

 private:
  // Appends the white space up to `end`. A sentence cut into pieces gets a space between them: the
  // source's space is at the end of a piece, and translations end without one.
  void between(int64_t end) {
    std::string_view space = part(source_, {at_, end});
    if (space.empty() && at_ > 0 && end < static_cast<int64_t>(source_.size()) &&
        source_[static_cast<size_t>(at_ - 1)] == ' ') {
      space = " ";
    }
    for (std::string& text : result_.alternatives) text += space;
  }

  std::string_view source_;
  int64_t prefix_bytes_;
  int64_t at_ = 0;
  Translation result_;
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

void Translator::translate(const std::vector<std::string>& texts, const TranslateOptions& options,
                           const std::function<void(size_t, Translation&&)>& on_result) {
  const Model& model = engine_->model();
  const SearchOptions search = options.search ? *options.search : default_search(model);
  const Splitter splitter(model, options);
  std::vector<Piece> pieces;
  std::vector<size_t> counts;  // pieces of each text
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t before = pieces.size();
    splitter.split(texts[i], i, pieces);
    counts.push_back(pieces.size() - before);
  }
  std::vector<Request> requests;
  for (const Piece& piece : pieces) {
    const bool first = requests.empty() || pieces[requests.size() - 1].text != piece.text;
    const std::string_view sentence = part(texts[piece.text], piece.span);
    requests.push_back({.text = options.source_prefix + std::string(sentence),
                        .prefix = first ? options.prefix : "",
                        .source_language = options.source_language,
                        .target_language = options.target_language,
                        .search = with_terms(search, options.terms, sentence),
                        .stream = requests.size(),
                        .may_truncate = true});
  }
  size_t next = 0;  // text to return
  std::optional<Assembly> assembly;
  const auto begin = [&] {
    if (next < texts.size()) assembly.emplace(texts[next], options, counts[next], search.nbest);
  };
  // Returns complete texts: the current one, and those after it without pieces.
  const auto return_complete = [&](size_t done) {
    while (next < texts.size() && done == counts[next]) {
      Translation translation = std::move(*assembly).take();
      translation.terms = used_terms(texts[next], translation.text, options.terms);
      on_result(next++, std::move(translation));
      begin();
      done = 0;
    }
  };
  begin();
  return_complete(0);
  size_t done = 0;  // pieces of the current text
  const auto on_sentence = [&](size_t i, Result&& result) {
    assembly->add(pieces[i], std::move(result));
    if (++done < counts[next]) return;
    return_complete(done);
    done = 0;
  };
  engine_->run(std::move(requests), on_sentence, options.is_cancelled);
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
