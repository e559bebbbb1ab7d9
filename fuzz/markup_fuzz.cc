// Any bytes as HTML and as Markdown, with the translation after a NUL: the parts cover the document,
// every mark and every fixed part is written exactly once, and placeholders are restored.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "infer/markup/place_marks.h"
#include "infer/markup/protected_text.h"
#include "text/markup/html.h"
#include "text/markup/markdown.h"
#include "text/unicode/words.h"

namespace {

using namespace heed;

void expect(bool condition) {
  if (!condition) std::abort();
}

// Alignments that depend on the bytes of the texts alone.
std::vector<Alignment> alignments_of(const std::string& source, const std::string& target) {
  std::vector<Alignment> list;
  const std::vector<TextSpan> from = word_spans(source), to = word_spans(target);
  for (size_t t = 0; t < to.size() && !from.empty(); ++t) {
    const auto byte = static_cast<unsigned char>(target[static_cast<size_t>(to[t].begin)]);
    if (byte % 4 == 0) continue;
    list.push_back({.target = to[t], .source = from[(t * 7 + byte) % from.size()], .weight = 0.5});
  }
  return list;
}

size_t size_of(TextSpan span) { return static_cast<size_t>(span.end - span.begin); }

void place(const std::string& document, const MarkedText& parsed, const std::string& target) {
  for (const TextBlock& block : parsed.blocks) {
    expect(block.sources.size() == block.text.size() + 1);
    std::vector<TextSpan> fixed;
    for (const FixedText& f : block.fixed) fixed.push_back(f.text);
    std::vector<int64_t> cuts;
    for (const Mark& mark : block.marks) cuts.push_back(mark.at);
    const ProtectedText text(block.text, protected_spans(block.text, fixed, cuts),
                             ProtectedText::Method::pieces, 3);
    const auto restored = text.restore(target, alignments_of(text.masked(), target));
    expect(restored.has_value());
    std::vector<TextSpan> placed;
    for (size_t i = 0, span = 0; i < fixed.size(); ++i) {
      while (text.spans()[span].end < fixed[i].end) ++span;
      const int64_t begin =
          restored->placed[span].begin + fixed[i].begin - text.spans()[span].begin;
      placed.push_back({begin, begin + fixed[i].end - fixed[i].begin});
      expect(restored->text.compare(static_cast<size_t>(begin), size_of(fixed[i]), block.text,
                                    static_cast<size_t>(fixed[i].begin), size_of(fixed[i])) == 0);
    }
    std::string out;
    std::vector<int64_t> positions;
    append_marked(out, document, block,
                  {.text = restored->text, .alignments = restored->alignments, .placed = placed},
                  &positions);
    // Everything exactly once: the sizes add up, escapes apart.
    size_t least = restored->text.size();
    for (const Mark& mark : block.marks) least += size_of(mark.raw);
    for (size_t i = 0; i < fixed.size(); ++i) {
      least += size_of(block.fixed[i].raw), least -= size_of(fixed[i]);
    }
    expect(out.size() >= least && out.size() <= least + 5 * restored->text.size());
    expect(positions.back() == static_cast<int64_t>(out.size()));
  }
}

void kept(const std::string& source, const std::string& target) {
  const ProtectedText text(source, protected_spans(source, {}, {}), ProtectedText::Method::kept);
  const auto restored = text.restore(target, {});
  expect(!restored || restored->text == target);
  const ProtectedText removed(source, text.spans(), ProtectedText::Method::removed);
  expect(removed.restore(target, alignments_of(removed.masked(), target)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  const std::string document = all.substr(0, end);
  const std::string target = end == std::string::npos ? "eins zwei" : all.substr(end + 1);
  place(document, parse_html(document), target);
  place(document, parse_markdown(document), target);
  kept(document, target);
  return 0;
}
