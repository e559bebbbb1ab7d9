// Any bytes as a corpus, read and tokenized: the first three select the format, the objective and the
// columns; the rest is the file, or two separated by a NUL.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/records/example.h"
#include "data/records/record_reader.h"
#include "expect_ordinary.h"
#include "fuzz_folder.h"

namespace {

using namespace heed;

constexpr std::array<const char*, 8> kColumns{"", "1", "2", "3", "0", "text", "a.b", "-1"};

CorpusOptions corpus_of(const uint8_t* choice, std::string_view content,
                        const fuzz::ScratchFolder& folder) {
  CorpusOptions corpus;
  corpus.format = kEnumNames<CorpusFormat>[choice[0] % kEnumNames<CorpusFormat>.size()].value;
  corpus.unit = kEnumNames<TextUnit>[choice[2] / 64 % kEnumNames<TextUnit>.size()].value;
  corpus.first_column = kColumns[choice[2] % 8];
  corpus.label_column = kColumns[choice[2] / 8 % 8];
  if (corpus.format == CorpusFormat::parallel) {
    const auto [source, target] = fuzz::split_at_nul(content);
    corpus.files = {folder.write("source", source), folder.write("target", target)};
  } else {
    corpus.files = {folder.write("file", content)};
  }
  return corpus;
}

void expect_sound(const EncodedExample& example, Objective objective, int64_t vocabulary) {
  if (example.skip) return;
  for (const int32_t id : example.first) {
    if (id < 0 || id >= vocabulary) std::abort();
  }
  if (objective == Objective::tagging && example.first.size() != example.second.size()) {
    std::abort();
  }
}

void expect_sound(const Record& record, Objective objective) {
  if (record.skip) return;
  for (const size_t begin : record.sentences) {
    if (begin > record.first.size()) std::abort();
  }
  if (objective == Objective::tagging && record.words.size() != record.tags.size()) std::abort();
  if (record.line < 1 || record.where().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kChoices = 3;
  if (size < kChoices) return 0;
  static const fuzz::ScratchFolder folder;
  const std::string_view content(reinterpret_cast<const char*>(data) + kChoices, size - kChoices);
  const Objective objective = kEnumNames<Objective>[data[1] % kEnumNames<Objective>.size()].value;
  const CorpusOptions corpus = corpus_of(data, content, folder);
  const FilterOptions filters{.max_tokens = 64, .max_line_bytes = 512};
  fuzz::expect_ordinary([&] {
    const auto reader = open_records(corpus, objective, filters);
    for (Record record; reader->next(record);) expect_sound(record, objective);
  });
  static const TokenizerPtr tokenizer = make_tokenizer("byte");
  fuzz::expect_ordinary([&] {
    const ExampleEncoder encoder(*tokenizer, corpus, {.kind = objective}, filters);
    const auto reader = open_records(corpus, objective, filters);
    for (Record record; reader->next(record);) {
      expect_sound(encoder.encode(record), objective, tokenizer->vocabulary_size());
    }
  });
  return 0;
}
