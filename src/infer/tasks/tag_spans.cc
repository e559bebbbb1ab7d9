#include "infer/tasks/tag_spans.h"

#include <string_view>

namespace heed {
namespace {

constexpr std::string_view kOutside = "O";  // the label outside of spans

}  // namespace

std::vector<TaggedSpan> tag_spans(std::span<const TagPart> parts,
                                  const std::vector<std::string>& labels) {
  std::vector<TaggedSpan> spans;
  int64_t count = 0;  // parts in the last span; 0: it has ended
  for (const TagPart& part : parts) {
    std::string_view name = labels[static_cast<size_t>(part.label)];
    if (name == kOutside) {
      count = 0;
      continue;
    }
    const bool begins = name.starts_with("B-"), continues = name.starts_with("I-");
    if (begins || continues) name.remove_prefix(2);
    // Labels without B- and I- are of single words, such as parts of speech: two nouns are two
    // spans. Only the tokens of one word, which touch, are joined.
    const bool touches = count > 0 && spans.back().span.end == part.span.begin;
    const bool joins = continues || (!begins && touches);
    if (count > 0 && joins && spans.back().name == name) {
      TaggedSpan& span = spans.back();
      span.span.end = part.span.end;
      span.probability += (part.probability - span.probability) / static_cast<double>(++count);
    } else {
      spans.push_back({part.span, std::string(name), part.probability});
      count = 1;
    }
  }
  return spans;
}

}  // namespace heed
