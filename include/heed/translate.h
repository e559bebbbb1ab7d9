// Whole texts in, whole texts out: Translator and Generator, over an Engine.
//
//   heed::Model model = heed::Model::load("models/en-de");
//   heed::Translator(model).translate("Good morning. How are you?").text
//
//   heed::Generator(heed::Model::load("models/shakespeare")).generate("Once upon a time").text
//
// Threads and errors are as in heed/engine.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/engine.h"

namespace heed {

// What a text is written in.
//   html      Tags stay, well nested, at the words that theirs are translated to; attributes, comments,
//             script, style, pre, code and elements with translate="no" or class="notranslate" are
//             copied. Block-level elements delimit sentences; outside of them a line break does too.
//   markdown  Emphasis, links, headings, lists and tables stay; code and URLs are copied. The lines of a
//             paragraph become one.
// The text between is translated as it would be without markup.
enum class TextFormat { text, html, markdown };
template <>
inline constexpr std::array<EnumName<TextFormat>, 3> kEnumNames<TextFormat>{{
    {TextFormat::text, "text"},
    {TextFormat::html, "html"},
    {TextFormat::markdown, "markdown"},
}};

// A glossary entry: how a word or phrase must be translated.
struct Term {
  std::string source, target;
};

// What is wrong with a translation, as a comparison with its source shows. A sentence of which this
// is so was translated again, in parts or by another search, without success.
enum class TranslationWarning {
  none,
  repetition,  // it repeats what the source does not
  too_short,   // parts of the source are probably missing
  too_long,    // it has no end
};
template <>
inline constexpr std::array<EnumName<TranslationWarning>, 4> kEnumNames<TranslationWarning>{{
    {TranslationWarning::none, "none"},
    {TranslationWarning::repetition, "repetition"},
    {TranslationWarning::too_short, "too_short"},
    {TranslationWarning::too_long, "too_long"},
}};

// A text and its translation. Sentences are translated one by one and joined with the white space
// and blank lines of the source. Placeholders are in the translation exactly as often as in the text:
// {name}, ${name}, %s, %1$s, <ph0>, URLs, e-mail addresses, @name, #name and emoji.
struct Translation {
  std::string text;
  // The n best, each made of its sentences' translations of that rank; the first is `text`.
  std::vector<std::string> alternatives;
  std::vector<double> scores;  // of the alternatives: sums over their sentences
  // Of `text`; spans are those of the whole texts. `token` is -1 for a placeholder that was put back.
  std::vector<Alignment> alignments;
  // The terms that occur in the source, as indices into TranslateOptions::terms, and whether `text`
  // has their target: a sentence that reaches its maximum length may lack it.
  struct UsedTerm {
    size_t term = 0;
    bool used = false;
  };
  std::vector<UsedTerm> terms;
  int64_t sentences = 0;   // or parts of sentences, where they were too long
  bool truncated = false;  // a piece exceeded the context length
  TranslationWarning warning = TranslationWarning::none;  // of the first piece with one
  uint64_t seed = 0;  // of a sampled translation: SearchOptions::seed
};

struct TranslateOptions {
  std::optional<SearchOptions> search{};  // not set: Translator::default_search()
  TextFormat format = TextFormat::text;
  bool split_sentences = true;
  std::string source_prefix{};  // before every sentence: "translate English to German: "
  std::string prefix{};         // beginning of the translation
  std::string source_language{}, target_language{};
  // Where a sentence has a term's source as whole words, in any case, its target is a required
  // phrase of the search, as it is spelt here; the beam size is then at least 4.
  std::vector<Term> terms{};
  std::function<bool()> is_cancelled{};  // see Engine::run()
};

template <class Options, class Other, class Visit>
requires std::same_as<std::remove_const_t<Options>, TranslateOptions>
void describe(Options& o, Other& other, Visit&& visit) {
  describe_text(o, other, visit);
  visit(OptionInfo{.name = "source_prefix",
                   .help = "text before every sentence: 'translate English to German: '"},
        o.source_prefix, other.source_prefix);
  visit(OptionInfo{.name = "split_sentences", .help = "translate sentence by sentence"},
        o.split_sentences, other.split_sentences);
  visit(OptionInfo{.name = "format", .help = "what the text is written in: its markup stays"},
        o.format, other.format);
}

class Translator {
 public:
  // Throws unsupported for a model without an encoder.
  explicit Translator(Model model, const EngineOptions& options = {});
  // Shares an engine.
  explicit Translator(std::shared_ptr<Engine> engine);

  // The model's search options; where its files name none, beam 4 and length penalty 0.6.
  static SearchOptions default_search(const Model& model);

  // Sentences beyond 128 tokens, and those whose translation is degenerate, are cut after clauses,
  // words or characters and translated in pieces. Words beyond 200 bytes are data and are copied.
  // Required phrases occur once in a text, where they lower the score least.
  Translation translate(std::string_view text, const TranslateOptions& options = {});
  // Many; on_result in their order, as with Engine::run().
  void translate(const std::vector<std::string>& texts, const TranslateOptions& options,
                 const std::function<void(size_t index, Translation&& translation)>& on_result);

  Engine& engine() { return *engine_; }

 private:
  std::shared_ptr<Engine> engine_;
};

class Generator {
 public:
  explicit Generator(Model model, const EngineOptions& options = {});

  Answer generate(std::string_view prompt, std::optional<SearchOptions> search = {});

  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace heed
