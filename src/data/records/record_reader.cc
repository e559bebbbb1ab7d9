#include "data/records/record_reader.h"

#include <filesystem>
#include <utility>

#include "base/check.h"
#include "data/records/files_reader.h"
#include "heed/error.h"

namespace heed {

std::string Record::where() const {
  return (file != nullptr ? *file : std::string("?")) + ":" + std::to_string(line);
}

std::string Record::place() const { return why.empty() ? where() : where() + ": " + why; }

void Record::reject(std::string reason) {
  skip = Skip::malformed;
  if (why.empty()) why = std::move(reason);  // a sentence may have several
}

void Record::clear() {
  for (std::string* text : {&first, &second, &label, &why}) text->clear();
  words.clear();
  tags.clear();
  sentences.clear();
  has_second = false;
  ends_document = true;
  skip.reset();
  file = nullptr;
  line = 0;
}

namespace {

bool name_has(const std::string& path, std::string_view extension) {
  const std::string name = std::filesystem::path(path).filename();
  const size_t place = name.find(extension);
  if (place == std::string::npos) return false;
  // Followed by nothing or a compression suffix.
  const std::string_view rest = std::string_view(name).substr(place + extension.size());
  return rest.empty() || rest.starts_with('.');
}

bool suits(CorpusFormat format, Objective objective) {
  const bool document = objective == Objective::causal_lm || objective == Objective::masked_lm ||
                        objective == Objective::span_corruption ||
                        objective == Objective::denoising;
  const bool pair = objective == Objective::translation || objective == Objective::parsing;
  const bool labelled =
      objective == Objective::classification || objective == Objective::regression;
  switch (format) {
    case CorpusFormat::automatic:
      return false;
    case CorpusFormat::text:
      return document;
    case CorpusFormat::parallel:
      return pair;
    case CorpusFormat::labelled:
      return labelled;
    case CorpusFormat::conll:
      return objective == Objective::tagging;
    case CorpusFormat::brackets:
      return objective == Objective::parsing || objective == Objective::tagging;
    case CorpusFormat::tsv:
    case CorpusFormat::csv:
      return objective != Objective::tagging;
    case CorpusFormat::jsonl:
      return true;
  }
  return false;
}

std::string formats_for(Objective objective) {
  std::string names;
  for (const auto& [format, name] : kEnumNames<CorpusFormat>) {
    if (suits(format, objective)) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

}  // namespace

CorpusFormat format_of(const CorpusOptions& corpus, Objective objective) {
  if (corpus.format != CorpusFormat::automatic || corpus.files.empty()) return corpus.format;
  static constexpr std::pair<std::string_view, CorpusFormat> kExtensions[] = {
      {".tsv", CorpusFormat::tsv},      {".csv", CorpusFormat::csv},
      {".jsonl", CorpusFormat::jsonl},  {".conllu", CorpusFormat::conll},
      {".conll", CorpusFormat::conll},  {".mrg", CorpusFormat::brackets},
      {".ptb", CorpusFormat::brackets},
  };
  for (const auto& [extension, format] : kExtensions) {
    if (name_has(corpus.files[0], extension) && suits(format, objective)) return format;
  }
  if (suits(CorpusFormat::parallel, objective) && corpus.files.size() == 2) {
    return CorpusFormat::parallel;
  }
  if (suits(CorpusFormat::labelled, objective)) return CorpusFormat::labelled;
  if (objective == Objective::tagging) return CorpusFormat::conll;
  if (objective == Objective::parsing) return CorpusFormat::brackets;
  return suits(CorpusFormat::text, objective) ? CorpusFormat::text : CorpusFormat::parallel;
}

std::unique_ptr<RecordReader> open_records(const CorpusOptions& corpus, Objective objective,
                                           const FilterOptions& filters) {
  if (corpus.files.empty()) {
    throw Error(ErrorCode::invalid_argument, "a corpus must have files",
                "pass one file, or a source and a target file");
  }
  const CorpusFormat format = format_of(corpus, objective);
  if (!suits(format, objective)) {
    throw Error(ErrorCode::invalid_argument,
                corpus.files[0] + ": format \"" + std::string(name_of(format)) +
                    "\" does not support the objective \"" + std::string(name_of(objective)) + "\"",
                "formats for " + std::string(name_of(objective)) + ": " + formats_for(objective));
  }
  switch (format) {
    case CorpusFormat::text:
      return open_text_records(corpus, filters);
    case CorpusFormat::labelled:
      return open_labelled_records(corpus, filters);
    case CorpusFormat::parallel:
      return open_parallel_records(corpus, filters);
    case CorpusFormat::tsv:
      return open_table_records(corpus, objective, filters, /*csv=*/false);
    case CorpusFormat::csv:
      return open_table_records(corpus, objective, filters, /*csv=*/true);
    case CorpusFormat::jsonl:
      return open_json_records(corpus, objective, filters);
    case CorpusFormat::conll:
      return open_conll_records(corpus, filters);
    case CorpusFormat::brackets:
      return open_bracket_records(corpus, objective, filters);
    case CorpusFormat::automatic:
      break;
  }
  HEED_CHECK(false, "unknown corpus format");
}

std::vector<size_t> find_sentences(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t i = text.find_first_of(".!?"); i != std::string_view::npos;
       i = text.find_first_of(".!?", i)) {
    size_t end = text.find_first_not_of(".!?\"')]", i);
    if (end == std::string_view::npos) break;
    const bool word_follows =
        text[end] == ' ' && text.find_first_not_of(' ', end) != std::string_view::npos;
    if (word_follows) starts.push_back(end);
    i = end;
  }
  return starts;
}

}  // namespace heed
