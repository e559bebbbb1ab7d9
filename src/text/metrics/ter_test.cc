#include <gtest/gtest.h>

#include "heed/error.h"
#include "heed/metrics.h"

// The golden lines for TER are in bleu_test.cc.
namespace heed {
namespace {

double score(const std::string& hypothesis, const std::string& reference) {
  return ter({hypothesis}, {{reference}}).score;
}

TEST(Ter, CountsEditsPerReferenceWord) {
  EXPECT_EQ(score("aaaa bbbb cccc dddd", "aaaa bbbb cccc dddd"), 0);
  EXPECT_EQ(score("dddd eeee ffff", "aaaa bbbb cccc"), 100);
  EXPECT_EQ(score("", "a"), 100);
  EXPECT_EQ(score("a b c d", "a b"), 100);
  EXPECT_EQ(score("", ""), 0);
  EXPECT_EQ(score("a b", ""), 100);
}

TEST(Ter, AShiftIsOneEdit) {
  EXPECT_DOUBLE_EQ(score("d e f g h a b c", "a b c d e f g h"), 100.0 / 8);
  EXPECT_DOUBLE_EQ(score("b a d c", "a b c d"), 50);  // two shifts
}

TEST(Ter, ShiftsNoMoreThanTenWordsAtATime) {
  // The four move, not the eleven.
  EXPECT_DOUBLE_EQ(score("x y z q 1 2 3 4 5 6 7 8 9 10 11", "1 2 3 4 5 6 7 8 9 10 11 x y z q"),
                   100.0 / 15);
  // Eleven and eleven: ten move, and then one.
  EXPECT_DOUBLE_EQ(score("a b c d e f g h i j k 1 2 3 4 5 6 7 8 9 10 11",
                         "1 2 3 4 5 6 7 8 9 10 11 a b c d e f g h i j k"),
                   200.0 / 22);
}

// Sentences of WMT 2019, from sacreBLEU's tests.
TEST(Ter, EqualsTercomOnRealSentences) {
  const std::vector<std::string> hypotheses = {
      "wählen Sie \" Bild neu berechnen , \" um beim Ändern der Bildgröße Pixel hinzuzufügen oder "
      "zu "
      "entfernen , damit das Bild ungefähr dieselbe Größe aufweist wie die andere Größe .",
      "klicken Sie auf der Registerkarte \" Optionen \" auf die Schaltfläche \" Benutzerdefiniert "
      "\" "
      "und geben Sie Werte für \" Fehlerkorrektur-Level \" und \" Y / X-Verhältnis \" ein .",
      "Sie können beispielsweise ein Dokument erstellen , das ein Auto über die Bühne enthält ."};
  const References references = {
      {"wählen Sie \" Bild neu berechnen , \" um beim Ändern der Bildgröße Pixel hinzuzufügen oder "
       "zu "
       "entfernen , damit die Darstellung des Bildes in einer anderen Größe beibehalten wird ."},
      {"klicken Sie auf der Registerkarte \" Optionen \" auf die Schaltfläche \" Benutzerdefiniert "
       "\" "
       "und geben Sie für \" Fehlerkorrektur-Level \" und \" Y / X-Verhältnis \" niedrigere Werte "
       "ein "
       "."},
      {"Sie können beispielsweise ein Dokument erstellen , das ein Auto enthalt , das sich über "
       "die "
       "Bühne bewegt ."}};
  EXPECT_EQ(ter(hypotheses, references).edits, 17);  // 0.136 of the 125 words of all five
}

TEST(Ter, BestReferenceAgainstTheMeanLength) {
  const TerScore result = ter({"a b"}, {{"a b", "c d e f"}});
  EXPECT_EQ(result.edits, 0);
  EXPECT_EQ(result.ref_len, 3);
}

TEST(Ter, SearchesNearTheDiagonalAsSacrebleu) {
  std::string many = "w0";
  for (int i = 1; i < 300; ++i) many += " w" + std::to_string(i);
  EXPECT_DOUBLE_EQ(score("a", many + " a"), 100.0 * 300 / 301);
  EXPECT_DOUBLE_EQ(score("a", "a " + many), 100);  // the match is outside the beam
  EXPECT_DOUBLE_EQ(score(many + " a", "a"), 30000);
}

TEST(Ter, SignatureHasTheOptions) {
  EXPECT_EQ(
      ter({"a"}, {{"A"}},
          {.normalized = true, .no_punct = true, .asian_support = true, .case_sensitive = true})
          .text(),
      "TER|nrefs:1|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes|version:2.6.0 = 100.00");
}

TEST(Ter, RejectsDifferentCounts) { EXPECT_THROW(ter({"a", "b"}, {{"a"}}), Error); }

}  // namespace
}  // namespace heed
