// A sentence whose placeholders the model must not change.
//
//   ProtectedText text("Hi {name}, it rains.", {{3, 9}}, ProtectedText::Method::pieces, 10);
//   text.masked();                                  // "Hi <ph0>, it rains."
//   text.restore("Hallo <ph0>, es regnet.", {});    // "Hallo {name}, es regnet."
//
// Whatever the model does with them, each placeholder is in the result exactly once: doubles are
// dropped, missing ones are inserted where the words beside them are aligned to.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/engine.h"

namespace heed {

// How many of the pieces <ph0>, <ph1>, … the vocabulary has, from the first on: a model with them was
// trained to copy them.
int placeholder_pieces(const Tokenizer& tokenizer);

// The placeholders of a text (text/markup/placeholders.h) and its `fixed` parts, in order and disjoint.
// With `join_neighbours`, those with nothing or only a separator between them are one span, unless one
// of `cuts`, in order, is between them. Where each has a piece they are kept apart, so that a text gives
// the same spans with and without markup.
std::vector<TextSpan> protected_spans(std::string_view text, std::span<const TextSpan> fixed,
                                      std::span<const int64_t> cuts, bool join_neighbours = true);

// Whether the text has letters or digits outside of the spans; others need no translation.
bool has_words_outside(std::string_view text, std::span<const TextSpan> spans);

class ProtectedText {
 public:
  enum class Method {
    pieces,   // replaced by <ph0>, <ph1>, …; those beyond the vocabulary's are removed
    kept,     // given to the model as they are: many models copy some of them
    removed,  // not given to the model
  };
  // `spans` of `text` are in order and disjoint. `pieces` is placeholder_pieces().
  ProtectedText(std::string_view text, std::vector<TextSpan> spans, Method method, int pieces = 0);

  const std::string& masked() const { return masked_; }  // what the model translates
  Method method() const { return method_; }
  const std::string& text() const { return text_; }
  const std::vector<TextSpan>& spans() const { return spans_; }

  struct Restored {
    std::string text;
    std::vector<Alignment> alignments;  // source: bytes of the sentence; target: of `text`
    std::vector<TextSpan> placed;       // bytes of `text`: where each span is
  };
  // From the translation of masked() and its alignments. None, only if they were kept: one of the
  // spans is not in it as often as in the sentence.
  std::optional<Restored> restore(std::string_view answer,
                                  std::span<const Alignment> alignments) const;

 private:
  std::optional<Restored> find_kept(std::string_view answer,
                                    std::span<const Alignment> alignments) const;

  std::string text_;
  std::vector<TextSpan> spans_;
  Method method_;
  std::string masked_;
  std::vector<int64_t> sources_;    // where each byte of masked_ is from, and the end
  std::vector<TextSpan> replaced_;  // of masked_: each span's piece; empty: removed here
};

}  // namespace heed
