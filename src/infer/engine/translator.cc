// Translator and Generator: splits texts into sentences, and joins their translations.
#include <algorithm>

#include "heed/engine.h"
#include "heed/error.h"
#include "heed/translate.h"
#include "infer/engine/piece_translator.h"
#include "infer/engine/text_pieces.h"
#include "infer/search/terms.h"

namespace heed {
namespace {

// A translation, assembled from its pieces in order.
class Assembly {
 public:
  Assembly(std::string_view source, const TranslateOptions& options, int nbest)
      : source_(source), prefix_bytes_(static_cast<int64_t>(options.source_prefix.size())) {
    result_.alternatives.resize(static_cast<size_t>(nbest));
    result_.scores.resize(result_.alternatives.size());
  }

  void add(TranslatedPiece&& translated) {
    const TextPiece& piece = translated.piece;
    Result& result = translated.result;
    between(piece.span.begin);
    at_ = piece.span.end;
    ++result_.sentences;
    if (piece.is_copied) return copy(piece.span);
    if (result_.warning == TranslationWarning::none) result_.warning = translated.warning;
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
    result_.truncated = result_.truncated || result.truncated;
  }

  Translation take() && {
    between(static_cast<int64_t>(source_.size()));
    result_.text = result_.alternatives.front();
    return std::move(result_);
  }

 private:
  // Appends the white space up to `end`.
  void between(int64_t end) {
    const std::string_view space = part(source_, {at_, end});
    for (std::string& text : result_.alternatives) text += space;
  }

  void copy(TextSpan span) {
    for (std::string& text : result_.alternatives) text += part(source_, span);
  }

  std::string_view source_;
  int64_t prefix_bytes_;
  int64_t at_ = 0;
  Translation result_;
};

}  // namespace

namespace {

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
  const TextSplitter splitter(model, options);
  const PieceTranslator translator(*engine_, options, search, splitter);
  struct Text {
    std::vector<TextPiece> pieces;
    std::vector<PieceTranslator::Place> places;
    std::vector<TranslatedPiece> done;  // the first of them
  };
  std::vector<Text> all(texts.size());
  std::vector<size_t> owners;  // of the requests
  std::vector<Request> requests;
  uint64_t streams = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    Text& text = all[i];
    text.pieces = splitter.split(texts[i]);
    text.places = PieceTranslator::places(text.pieces, streams);
    streams += text.pieces.size();
    for (size_t p = 0; p < text.pieces.size(); ++p) {
      if (text.pieces[p].is_copied) continue;
      requests.push_back(translator.request(texts[i], text.pieces[p], text.places[p]));
      owners.push_back(i);
    }
  }
  size_t next = 0;  // text to return
  // Copied pieces need no result.
  const auto skip_copied = [](Text& text) {
    while (text.done.size() < text.pieces.size() && text.pieces[text.done.size()].is_copied) {
      text.done.push_back({.piece = text.pieces[text.done.size()]});
    }
  };
  const auto return_complete = [&] {
    for (; next < texts.size(); ++next) {
      Text& text = all[next];
      skip_copied(text);
      if (text.done.size() < text.pieces.size()) return;
      Assembly assembly(texts[next], options, search.nbest);
      for (TranslatedPiece& piece :
           translator.finish(texts[next], std::move(text.done), text.places)) {
        assembly.add(std::move(piece));
      }
      Translation translation = std::move(assembly).take();
      if (is_random(search)) translation.seed = search.seed;
      translation.terms = used_terms(texts[next], translation.text, options.terms);
      on_result(next, std::move(translation));
      text = {};
    }
  };
  return_complete();
  const auto on_piece = [&](size_t request, Result&& result) {
    Text& text = all[owners[request]];
    skip_copied(text);
    text.done.push_back({.piece = text.pieces[text.done.size()], .result = std::move(result)});
    return_complete();
  };
  engine_->run(std::move(requests), on_piece, options.is_cancelled);
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
