// Evaluation metrics, equal to those of the reference tools to the last digit.
//
//   std::vector<std::string> hypotheses = heed::read_lines("out.de");
//   heed::References references = heed::as_references({heed::read_lines("test.de")});
//   std::string line = heed::bleu(hypotheses, references).text();   // "BLEU|nrefs:1|… = 40.65 …"
//
// BLEU, chrF and TER equal sacreBLEU (https://github.com/mjpost/sacrebleu), span F1 conlleval,
// bracketing EVALB, and the others scikit-learn and SciPy. The first five are percentages, as those
// tools print them; the others are fractions.
//
// All are pure functions and thread-safe. Text is UTF-8; invalid bytes are never an error. Lists of
// different lengths and empty lists throw heed::Error, invalid_argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heed {

// ---------------------------------------------------------------- text

// The lines of a file, plain, .gz or .zst; "-" is standard input. Trailing white space is stripped, as
// in sacreBLEU. Throws not_found, invalid_argument (a folder) or corrupt_file.
std::vector<std::string> read_lines(const std::string& path);

// references[segment]: that segment's references, at least one; their number may vary. An empty text
// is a valid reference.
using References = std::vector<std::vector<std::string>>;

// From parallel files: files[reference][segment], all of the same length.
References as_references(const std::vector<std::vector<std::string>>& files);
// Removes empty texts: in parallel files, an empty line may mean "no further reference".
References without_empty(References references);
// From lines of tab-separated columns: a source, then one or more references. Empty columns are
// ignored.
References references_from_tsv(const std::vector<std::string>& lines);

// ---------------------------------------------------------------- BLEU

struct BleuOptions {
  std::string tokenize = "13a";          // 13a, intl, zh, char or none
  std::string smooth = "exp";            // exp, floor, add-k or none
  std::optional<double> smooth_value{};  // of floor (0.1 when not given) and add-k (1)
  bool lowercase = false;
  bool effective_order = false;  // use only the orders that the hypothesis has; for sentence BLEU
  int max_order = 4;
};

struct BleuScore {
  double score = 0;
  std::vector<double> precisions{};  // in percent, order 1 first
  double bp = 0;                     // brevity penalty
  int64_t sys_len = 0, ref_len = 0;  // tokens
  // Hypotheses that end in " .": from 100 on the text is probably tokenized, and the score is not
  // comparable with others.
  int64_t tokenized_lines = 0;
  std::string signature{};  // the settings, for reproducing the score

  // sacreBLEU's line: "BLEU|signature = 40.65 70.2/47.7/35.1/26.4 (BP = 0.968 …)".
  std::string text(int decimals = 2) const;
};

BleuScore bleu(const std::vector<std::string>& hypotheses, const References& references,
               const BleuOptions& options = {});
// One sentence, always with effective_order.
BleuScore sentence_bleu(const std::string& hypothesis, const std::vector<std::string>& references,
                        BleuOptions options = {});

// ---------------------------------------------------------------- chrF

struct ChrfOptions {
  int char_order = 6;
  int word_order = 0;  // 2 is chrF++
  int beta = 2;        // how much recall weighs against precision
  bool lowercase = false;
  bool whitespace = false;     // count spaces as characters
  bool eps_smoothing = false;  // as chrF++.py does, instead of sacreBLEU's effective order
};

struct ChrfScore {
  double score = 0;
  std::string name{};  // chrF2, chrF2++
  std::string signature{};

  std::string text(int decimals = 2) const;
};

ChrfScore chrf(const std::vector<std::string>& hypotheses, const References& references,
               const ChrfOptions& options = {});

// ---------------------------------------------------------------- TER

struct TerOptions {
  bool normalized = false;     // split punctuation off, undo XML escapes
  bool no_punct = false;       // drop punctuation
  bool asian_support = false;  // the same for Chinese and Japanese, character by character
  bool case_sensitive = false;
};

struct TerScore {
  double score = 0;    // percent: lower is better
  double edits = 0;    // insertions, deletions, substitutions and shifts
  double ref_len = 0;  // words, the mean over a segment's references
  std::string signature{};

  std::string text(int decimals = 2) const;
};

TerScore ter(const std::vector<std::string>& hypotheses, const References& references,
             const TerOptions& options = {});

// ---------------------------------------------------------------- language models

struct Perplexity {
  double perplexity = 0;     // e ^ cross_entropy
  double cross_entropy = 0;  // nats a token
  int64_t tokens = 0;
};

// From the natural logarithms of the tokens' probabilities.
Perplexity perplexity(std::span<const double> log_probabilities);

// ---------------------------------------------------------------- classification

struct LabelScore {
  std::string label{};
  double precision = 0, recall = 0, f1 = 0;  // 0 instead of a division by 0
  int64_t gold = 0, predicted = 0, correct = 0;
};

// An average over labels: macro, micro, or weighted by the labels' gold counts.
struct AverageScore {
  double precision = 0, recall = 0, f1 = 0;
};

struct ClassificationScore {
  double accuracy = 0;
  double matthews = 0;  // Matthews correlation coefficient, for any number of labels
  AverageScore macro{}, micro{}, weighted{};
  std::vector<LabelScore> labels{};  // all labels of either side, sorted
  int64_t items = 0;
};

ClassificationScore classification(const std::vector<std::string>& gold,
                                   const std::vector<std::string>& predicted);

// ---------------------------------------------------------------- correlation

// Both need two or more pairs of finite numbers, and are NaN when all values of one side are equal.
double pearson(std::span<const double> gold, std::span<const double> predicted);
// Pearson correlation of the ranks; ties share their mean rank.
double spearman(std::span<const double> gold, std::span<const double> predicted);

// ---------------------------------------------------------------- tagging

using TagSentences = std::vector<std::vector<std::string>>;  // [sentence][word]: "B-PER", "O", …

struct SpanScore {
  double precision = 0, recall = 0, f1 = 0;  // percent, of whole spans with their types
  double accuracy = 0;                       // percent, of tags
  int64_t tokens = 0;
  int64_t gold = 0, predicted = 0, correct = 0;  // spans
  std::vector<LabelScore> types{};               // sorted; in percent as well

  std::string text() const;  // conlleval's lines
};

// By conlleval's rules: IOB1, IOB2, IOE and IOBES (BILOU).
SpanScore span_f1(const TagSentences& gold, const TagSentences& predicted);

// ---------------------------------------------------------------- parsing

// EVALB's parameter file; the defaults are EVALB's without one.
struct BracketOptions {
  int max_error = 10;   // throws after more sentences that cannot be compared
  int cutoff_len = 40;  // the second summary covers sentences up to this length
  bool labeled = true;
  // Cleans both trees as for training a parser: removes traces (-NONE-) and the phrases they leave
  // empty, function tags (NP-SBJ becomes NP) and unnamed roots. Not in EVALB.
  bool clean = false;
  std::vector<std::string> delete_label{};  // brackets, or words by their tag, to ignore
  std::vector<std::string> delete_label_for_length{};
  std::vector<std::string> quote_label{};  // tags of quotes, which may be deleted on one side
  std::vector<std::pair<std::string, std::string>> eq_label{}, eq_word{};
};

// Throws as read_lines(), and corrupt_file for an invalid line.
BracketOptions read_bracket_options(const std::string& path);

// The trees of a file: one per line as in EVALB, where an empty line is a missing tree; or over
// several lines as in the Penn Treebank, where lines that begin with a space continue the tree.
// Throws as read_lines().
std::vector<std::string> read_trees(const std::string& path);

enum class BracketStatus { ok = 0, error = 1, skip = 2 };  // EVALB's numbers

struct BracketSentence {
  int length = 0;  // words of the gold tree
  BracketStatus status = BracketStatus::ok;
  std::string problem{};  // the message if status is error
  int matched = 0, gold = 0, test = 0, crossing = 0;
  int words = 0, correct_tags = 0;
};

struct BracketSummary {
  int sentences = 0, errors = 0, skipped = 0, valid = 0;
  int64_t matched = 0, gold = 0, test = 0, crossing = 0, words = 0, correct_tags = 0;
  // Percentages of brackets, of valid sentences, and of words; 0 instead of a division by 0.
  double recall = 0, precision = 0, f1 = 0;
  double complete_match = 0, average_crossing = 0, no_crossing = 0, two_or_less_crossing = 0;
  double tagging_accuracy = 0;
};

struct BracketScore {
  std::vector<BracketSentence> sentences{};
  BracketSummary all{}, up_to_cutoff{};
  int cutoff_len = 0;

  std::string text() const;  // EVALB's table and summaries
};

// Penn Treebank trees, one per text. An empty text in `test` is skipped, not an error.
BracketScore brackets(const std::vector<std::string>& gold, const std::vector<std::string>& test,
                      const BracketOptions& options = {});

}  // namespace heed
