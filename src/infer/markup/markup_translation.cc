#include "infer/markup/markup_translation.h"

#include <algorithm>
#include <optional>

#include "infer/markup/place_marks.h"
#include "text/markup/html.h"
#include "text/markup/markdown.h"

namespace heed {
namespace {

// A document, assembled from the translations of its blocks in order.
class DocumentAssembly {
 public:
  DocumentAssembly(std::string_view source, const MarkedText& document, bool alignments)
      : source_(source), document_(document), alignments_(alignments) {
    result_.alternatives.emplace_back(), result_.scores.emplace_back();
  }

  bool is_complete() const { return next_block_ == document_.blocks.size(); }

  void add(PlainTranslation&& plain) {
    const Translation& translation = plain.translation;
    const size_t count = translation.alternatives.size();
    // As many alternatives as the block with the fewest, and one for all before the first block.
    if (next_block_ == 0) {
      result_.alternatives.resize(count), result_.scores.resize(count);
    }
    const size_t ranks = std::min(result_.alternatives.size(), count);
    result_.alternatives.resize(ranks), result_.scores.resize(ranks);
    copy_until_block();
    const TextBlock& block = document_.blocks[next_block_++];
    ++next_part_;
    for (size_t i = 0; i < ranks; ++i) {
      std::vector<int64_t> positions;
      append_marked(result_.alternatives[i], source_, block,
                    {.text = translation.alternatives[i],
                     .alignments = plain.alignments[i],
                     .placed = plain.placed[i]},
                    &positions);
      result_.scores[i] += translation.scores[i];
      if (i == 0 && alignments_) add_alignments(block, plain.alignments[0], positions);
    }
    result_.sentences += translation.sentences;
    result_.truncated = result_.truncated || translation.truncated;
    if (result_.warning == TranslationWarning::none) result_.warning = translation.warning;
    result_.seed = translation.seed;
    for (const auto& [term, used] : translation.terms) {
      const auto found = std::ranges::find(result_.terms, term, &Translation::UsedTerm::term);
      if (found == result_.terms.end()) {
        result_.terms.push_back({.term = term, .used = used});
      } else {
        found->used = found->used && used;
      }
    }
  }

  Translation take() && {
    copy_until_block();
    std::ranges::sort(result_.terms, {}, &Translation::UsedTerm::term);
    result_.text = result_.alternatives.front();
    return std::move(result_);
  }

 private:
  void copy_until_block() {
    for (; next_part_ < document_.parts.size() && document_.parts[next_part_].block < 0;
         ++next_part_) {
      const TextSpan raw = document_.parts[next_part_].raw;
      for (std::string& text : result_.alternatives) {
        text += source_.substr(static_cast<size_t>(raw.begin),
                               static_cast<size_t>(raw.end - raw.begin));
      }
    }
  }

  // From bytes of the block to those of the documents.
  void add_alignments(const TextBlock& block, const std::vector<Alignment>& alignments,
                      const std::vector<int64_t>& positions) {
    const auto at = [](const std::vector<int64_t>& list, int64_t i) {
      return list[static_cast<size_t>(i)];
    };
    for (Alignment alignment : alignments) {
      alignment.source = {at(block.sources, alignment.source.begin),
                          at(block.sources, alignment.source.end - 1) + 1};
      alignment.target = {at(positions, alignment.target.begin),
                          at(positions, alignment.target.end - 1) + 1};
      result_.alignments.push_back(alignment);
    }
  }

  std::string_view source_;
  const MarkedText& document_;
  bool alignments_;
  size_t next_part_ = 0, next_block_ = 0;
  Translation result_;
};

}  // namespace

void translate_markup(const std::vector<std::string>& texts, const TranslateOptions& options,
                      const TranslatePlain& translate_plain,
                      const std::function<void(size_t index, Translation&& result)>& on_result) {
  std::vector<MarkedText> documents;
  std::vector<PlainText> plain;
  for (const std::string& text : texts) {
    documents.push_back(options.format == TextFormat::html ? parse_html(text)
                                                           : parse_markdown(text));
  }
  for (const MarkedText& document : documents) {
    for (const TextBlock& block : document.blocks) {
      PlainText& p = plain.emplace_back();
      p.text = block.text;
      for (const FixedText& fixed : block.fixed) p.fixed.push_back(fixed.text);
      for (const Mark& mark : block.marks) p.cuts.push_back(mark.at);
      p.needs_alignments = !block.marks.empty();
      p.takes_prefix = &block == &document.blocks.front();
    }
  }
  const bool alignments = options.search && options.search->alignments;
  size_t next = 0;  // document
  std::optional<DocumentAssembly> assembly;
  // Returns complete documents: those without blocks, too.
  const auto return_complete = [&] {
    while (next < texts.size()) {
      if (!assembly) assembly.emplace(texts[next], documents[next], alignments);
      if (!assembly->is_complete()) return;
      on_result(next++, std::move(*assembly).take());
      assembly.reset();
    }
  };
  return_complete();
  translate_plain(plain, [&](size_t, PlainTranslation&& translation) {
    assembly->add(std::move(translation));
    return_complete();
  });
}

}  // namespace heed
