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

// What a word or phrase must be translated as.
struct Term {
  std::string source, target;
};

// A text and its translation. Its sentences are translated one by one, and put back with the white
// space and blank lines between them.
struct Translation {
  std::string text;
  // The n best, each made of its sentences' translations of that rank; the first is `text`.
  std::vector<std::string> alternatives;
  std::vector<double> scores;         // of the alternatives: their sentences' sums
  std::vector<Alignment> alignments;  // of `text`; spans are those of the whole texts
  // The terms that occur in the source, as places of TranslateOptions::terms, and whether `text`
  // has what they must become: a sentence that reaches its greatest length may be without it.
  struct UsedTerm {
    size_t term = 0;
    bool used = false;
  };
  std::vector<UsedTerm> terms;
  int64_t sentences = 0;
  bool truncated = false;  // something was longer than the model reads, and was cut
};

struct TranslateOptions {
  std::optional<SearchOptions> search{};  // nothing: the model's own
  bool split_sentences = true;
  std::string source_prefix{};  // before every sentence: "translate English to German: "
  std::string prefix{};         // how the translation begins
  std::string source_language{}, target_language{};
  // Where a sentence has a term's source as whole words, in any case, its search requires the
  // target, as it is spelt here: a beam of at least 4 finds the place where it costs least.
  std::vector<Term> terms{};
  std::function<bool()> is_cancelled{};  // as Engine::run() takes it
};

class Translator {
 public:
  // Throws unsupported for a model that has no source.
  explicit Translator(Model model, const EngineOptions& options = {});
  // With an engine that others use too.
  explicit Translator(std::shared_ptr<Engine> engine);

  // Sentences that are still longer than the model reads are cut at spaces and translated in
  // pieces.
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
