#include "infer/markup/protected_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "infer/engine/engine_testing.h"
#include "text/markup/placeholders.h"

namespace heed {
namespace {

using Method = ProtectedText::Method;

ProtectedText guarded(const std::string& text, Method method, int pieces = 10) {
  return {text, protected_spans(text, {}, {}), method, pieces};
}

// An alignment of the first occurrences of two texts.
Alignment link(const std::string& source, const std::string& from, const std::string& target,
               const std::string& to) {
  const auto span = [](const std::string& text, const std::string& what) {
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what << " in " << text;
    return TextSpan{static_cast<int64_t>(at), static_cast<int64_t>(at + what.size())};
  };
  return {.target = span(target, to), .source = span(source, from), .weight = 1};
}

void expect_places(const ProtectedText& text, const ProtectedText::Restored& restored) {
  for (size_t i = 0; i < text.spans().size(); ++i) {
    const auto part = [](const std::string& t, TextSpan s) {
      return t.substr(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin));
    };
    EXPECT_EQ(part(restored.text, restored.placed[i]), part(text.text(), text.spans()[i]));
  }
}

std::string restored(const ProtectedText& text, const std::string& answer,
                     const std::vector<Alignment>& alignments = {}) {
  const auto result = text.restore(answer, alignments);
  if (!result) return "none";
  expect_places(text, *result);
  return result->text;
}

TEST(ProtectedText, PiecesAreReplacedAndRestored) {
  const ProtectedText text = guarded("Hi {name}, see https://a.org.", Method::pieces);
  EXPECT_EQ(text.masked(), "Hi <ph0>, see <ph1>.");
  EXPECT_EQ(restored(text, "Siehe <ph1>, <ph0>!"), "Siehe https://a.org, {name}!");
}

TEST(ProtectedText, DoublesAreDroppedAndMissingOnesInserted) {
  const ProtectedText text = guarded("Hi {name}, see https://a.org.", Method::pieces);
  EXPECT_EQ(restored(text, "Hallo <ph0> <ph0>, siehe <ph1> <ph7>."),
            "Hallo {name}, siehe https://a.org.");
  EXPECT_EQ(restored(text, "<ph0> <ph0> siehe <ph1>."), "{name} siehe https://a.org.");
  // The last one belongs before the full stop.
  EXPECT_EQ(restored(text, "Hallo <ph0>, siehe."), "Hallo {name}, siehe https://a.org.");
  const std::string answer = "Hallo, siehe <ph1>.";
  EXPECT_EQ(restored(text, answer, {link(text.masked(), "Hi", answer, "Hallo")}),
            "Hallo {name}, siehe https://a.org.");
  EXPECT_EQ(restored(text, ""), "{name} https://a.org");
}

TEST(ProtectedText, MoreThanThePiecesAreRemoved) {
  const ProtectedText text = guarded("{a} and {b} or {c}", Method::pieces, 2);
  EXPECT_EQ(text.masked(), "<ph0> and <ph1> or");
  EXPECT_EQ(restored(text, "<ph0> und <ph1> oder"), "{a} und {b} oder {c}");
}

TEST(ProtectedText, TextLikeAPieceIsAPlaceholder) {
  const ProtectedText text = guarded("a <ph1> b {x} c", Method::pieces);
  EXPECT_EQ(text.masked(), "a <ph0> b <ph1> c");
  EXPECT_EQ(restored(text, "A <ph0> B <ph1> C"), "A <ph1> B {x} C");
}

TEST(ProtectedText, KeptOnesMustBeThereOnce) {
  const ProtectedText text = guarded("%s likes %s.", Method::kept);
  EXPECT_EQ(text.masked(), text.text());
  EXPECT_EQ(restored(text, "%s mag %s."), "%s mag %s.");
  EXPECT_EQ(restored(text, "%s mag."), "none");
  EXPECT_EQ(restored(text, "%s mag %s %s."), "none");
}

TEST(ProtectedText, RemovedOnesComeToTheirNeighbours) {
  const ProtectedText text = guarded("You have %d new messages, {name}!", Method::removed);
  EXPECT_EQ(text.masked(), "You have new messages,!");
  const std::string answer = "Sie haben neue Nachrichten!";
  EXPECT_EQ(restored(text, answer, {link(text.masked(), "new", answer, "neue")}),
            "Sie haben %d neue Nachrichten {name}!");
  EXPECT_EQ(restored(guarded("{count} files", Method::removed), "Dateien"), "{count} Dateien");
  EXPECT_EQ(restored(guarded("See you 😀", Method::removed), "Bis bald"), "Bis bald 😀");
}

TEST(ProtectedText, AlignmentsAreOfTheWholeTexts) {
  const ProtectedText text = guarded("Hi {name}, it rains.", Method::pieces);
  const std::string answer = "<ph0>, es regnet.";
  const auto result =
      text.restore(answer, std::vector{link(text.masked(), "it", answer, "es"),
                                       link(text.masked(), "rains", answer, "regnet")});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "{name}, es regnet.");
  std::vector<std::string> links;
  for (const Alignment& a : result->alignments) {
    links.push_back(text.text().substr(static_cast<size_t>(a.source.begin),
                                       static_cast<size_t>(a.source.end - a.source.begin)) +
                    "-" +
                    result->text.substr(static_cast<size_t>(a.target.begin),
                                        static_cast<size_t>(a.target.end - a.target.begin)));
  }
  EXPECT_THAT(links, testing::ElementsAre("{name}-{name}", "it-es", "rains-regnet"));
}

TEST(ProtectedText, SpansWithASeparatorBetweenAreOne) {
  const std::string text = "{a}/{b}, {c}. {d}";
  EXPECT_EQ(protected_spans(text, {}, {}), (std::vector<TextSpan>{{0, 12}, {14, 17}}));
  const std::vector<int64_t> cuts{3};
  EXPECT_EQ(protected_spans(text, {}, cuts), (std::vector<TextSpan>{{0, 3}, {4, 12}, {14, 17}}));
}

TEST(ProtectedText, PiecesOfAVocabulary) {
  EXPECT_EQ(placeholder_pieces(*make_tokenizer("byte")), 0);
  EXPECT_EQ(
      placeholder_pieces(*train_tokenizer({.type = "byte", .special_tokens = {"<ph0>", "<ph1>"}})),
      0);  // special tokens are not written
}

}  // namespace
}  // namespace heed
