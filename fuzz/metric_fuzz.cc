// Any bytes as a translation and its references, tab-separated, and as tags: every score is finite,
// and a text scores best against itself.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "heed/metrics.h"
#include "text/unicode/sentence_splitter.h"

namespace {

using namespace heed;

void expect(bool condition) {
  if (!condition) std::abort();
}

void translate(const std::vector<std::string>& lines) {
  const References references = references_from_tsv(lines);
  for (const char* tokenize : {"13a", "intl", "zh", "char", "none"}) {
    const BleuScore score = bleu(lines, references, {.tokenize = tokenize, .lowercase = true});
    expect(score.score >= 0 && score.score <= 100.01 && !score.text().empty());
  }
  for (const int word_order : {0, 2}) {
    const double score = chrf(lines, references, {.word_order = word_order}).score;
    expect(score >= 0 && score <= 100.01);
  }
  for (const bool asian : {false, true}) {
    const TerOptions options{.normalized = asian, .no_punct = asian, .asian_support = asian};
    expect(ter(lines, references, options).score >= 0);
    expect(ter(lines, as_references({lines}), options).score == 0);
  }
}

void tag(const std::vector<std::string>& lines) {
  const TagSentences gold{lines}, predicted{{lines.rbegin(), lines.rend()}};
  const SpanScore score = span_f1(gold, predicted);
  expect(score.correct <= score.gold && score.correct <= score.predicted);
  expect(!score.text().empty());
  expect(classification(gold[0], predicted[0]).accuracy <= 1);
}

void split(const std::string& text) {
  int64_t end = 0;
  for (const TextSpan& span : split_sentences(text)) {
    expect(span.begin >= end && span.begin < span.end);
    end = span.end;
  }
  expect(end <= static_cast<int64_t>(text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFolder folder;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string file = folder.write("text", text);
  fuzz::expect_ordinary([&] {
    const std::vector<std::string> lines = read_lines(file);
    if (lines.empty()) return;
    fuzz::expect_ordinary([&] { tag(lines); });
    translate(lines);
  });
  split(text);
  return 0;
}
