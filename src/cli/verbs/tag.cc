// heed tag: token classification.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "heed tag --model DIR sentences.txt";
constexpr const char* kHelp =
    "Words are separated by white space. Prints for each line one label per word, separated by\n"
    "spaces; _ for words after the truncation limit. With --spans: the spans of labels such as\n"
    "B-LOC and I-LOC, separated by tabs, as NAME BEGIN-END TEXT with byte offsets.\n"
    "\n"
    "Examples:\n"
    "  heed tag --model DIR sentences.txt\n"
    "  echo 'She lives in New York .' | heed tag --model DIR --spans";

struct TagFlags : LineFlags {
  bool spans = false;
  std::string aggregation = "first";
};

std::string slice(const std::string& text, TextSpan span) {
  return text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

std::string words_text(const Tagged& tagged) {
  std::string text;
  for (const TaggedWord& word : tagged.words) {
    text += (text.empty() ? "" : " ") + (word.label < 0 ? "_" : word.name);
  }
  return text + "\n";
}

std::string spans_text(const Tagged& tagged, const std::string& source) {
  std::string text;
  for (const TaggedSpan& span : tagged.spans) {
    text += (text.empty() ? "" : "\t") + span.name + " " + std::to_string(span.span.begin) + "-" +
            std::to_string(span.span.end) + " " + slice(source, span.span);
  }
  return text + "\n";
}

Json to_json(const Tagged& tagged, const std::string& source) {
  Json words = Json::array(), spans = Json::array();
  for (const TaggedWord& word : tagged.words) {
    words.push_back({{"word", slice(source, word.span)},
                     {"span", {word.span.begin, word.span.end}},
                     {"label", word.label < 0 ? Json() : Json(word.name)},
                     {"probability", word.probability}});
  }
  for (const TaggedSpan& span : tagged.spans) {
    spans.push_back({{"text", slice(source, span.span)},
                     {"span", {span.span.begin, span.span.end}},
                     {"label", span.name},
                     {"probability", span.probability}});
  }
  return {{"words", std::move(words)},
          {"spans", std::move(spans)},
          {"tokens", tagged.tokens},
          {"truncated", tagged.truncated}};
}

void run_tag(const TagFlags& flags, Output& out) {
  if (flags.aggregation != "first" && flags.aggregation != "simple") {
    throw Error(ErrorCode::invalid_argument,
                "--aggregation must be first or simple, got '" + flags.aggregation + "'",
                "first: a word has the label of its first token; simple: spans of tokens");
  }
  const TagOptions options{.aggregation = flags.aggregation == "first" ? Aggregation::first
                                                                       : Aggregation::simple};
  const Tagger tagger(load_model(flags.model, kExample), flags.task_options());
  CutLines cut;
  each_lines(flags, [&](const Lines& lines) {
    std::vector<TaskInput> inputs;
    for (const std::string& text : lines.texts) inputs.push_back({.text = text});
    const std::vector<Tagged> results = tagger.tag(inputs, options);
    for (size_t i = 0; i < results.size(); ++i) {
      out.write(flags.json    ? json_line(to_json(results[i], lines.texts[i]))
                : flags.spans ? spans_text(results[i], lines.texts[i])
                              : words_text(results[i]));
      cut.add(lines.first + static_cast<int64_t>(i), results[i]);
    }
    out.flush();
  });
  cut.report();
}

}  // namespace

void add_tag(Program& program) {
  const Command tag = program.add_verb("tag", "Label the words of texts (token classification)");
  const auto flags = std::make_shared<TagFlags>();
  add_switch(tag, "--spans", flags->spans, "print labelled spans");
  add_text(tag, "--aggregation", flags->aggregation, "NAME",
           "spans of words (first) or of tokens (simple)");
  add_line_flags(tag, *flags);
  tag.footer(kHelp);
  tag.on_run([flags](Output& out) { run_tag(*flags, out); });
}

}  // namespace heed::cli
