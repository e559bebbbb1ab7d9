// heed translate: line in, line out.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_feed.h"
#include "cli/line_verb.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/search_flags.h"
#include "cli/table.h"
#include "heed/error.h"
#include "heed/translate.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "Translates each line of FILE, or of standard input, sentence by sentence and prints the\n"
    "translations in the order of the lines; an empty line stays empty. Defaults, unless flags or\n"
    "generation_config.json set them: beam size 4, length penalty 0.6.\n"
    "\n"
    "Long sentences are translated in parts, and words of more than 200 bytes are copied. A\n"
    "translation that repeats itself or is far too short or too long is tried again in smaller\n"
    "parts; what remains is named in a warning and, with --json, in \"warning\".\n"
    "\n"
    "--nbest N prints N lines for each line: its number, a tab, the text. --scores prints the sum "
    "of\n"
    "the sentences' scores before the text. --alignments prints word alignments after it, as byte\n"
    "ranges: begin:end-begin:end, the source first.\n"
    "\n"
    "Placeholders stay as they are: {name}, ${name}, %s, %1$s, <ph0>, URLs, e-mail addresses, "
    "@name,\n"
    "#name and emoji. With --format html or markdown, FILE is one document: its markup stays, at "
    "the\n"
    "words that the marked ones are translated to; code, script, style and elements with\n"
    "translate=\"no\" are copied.\n"
    "\n"
    "Examples:\n"
    "  heed translate --model DIR test.en > test.de\n"
    "  heed translate --model DIR --format html page.html > page.de.html\n"
    "  echo 'Good morning.' | heed translate --model DIR --beam 4 --nbest 4 --scores\n"
    "  heed translate --model DIR --inputs ids.json --json";

// Lines that are read ahead, so that batches are full.
constexpr size_t kMostLines = 4096;

struct TranslateFlags : SearchFlags {
  std::vector<std::string> files;
  bool alignments = false;
  bool no_split = false;
  TextFormat format = TextFormat::text;
  std::string source_prefix, source_language, target_language;
};

std::string alignment_text(const std::vector<Alignment>& alignments) {
  std::string text;
  const auto span = [](TextSpan s) {
    return std::to_string(s.begin) + ":" + std::to_string(s.end);
  };
  for (const Alignment& a : alignments) {
    text += (text.empty() ? "" : " ") + span(a.source) + "-" + span(a.target);
  }
  return text;
}

// A translation is one line, whatever the model puts into it.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

std::string to_text(const Translation& translation, size_t line, const TranslateFlags& flags) {
  std::string text;
  for (size_t i = 0; i < translation.alternatives.size(); ++i) {
    if (flags.search.has("nbest")) text += std::to_string(line) + "\t";
    if (flags.scores) text += fixed(translation.scores[i], 6) + "\t";
    text += one_line(translation.alternatives[i]);
    if (flags.alignments && i == 0) text += "\t" + alignment_text(translation.alignments);
    text += "\n";
  }
  return text;
}

Json warning_json(TranslationWarning warning) {
  return warning == TranslationWarning::none ? Json() : Json(name_of(warning));
}

// Empty: there is nothing to warn of.
std::string warning_text(const Translation& translation) {
  if (translation.truncated) return "is longer than the context length and was truncated";
  switch (translation.warning) {
    case TranslationWarning::none:
      return "";
    case TranslationWarning::repetition:
      return "the translation repeats itself";
    case TranslationWarning::too_short:
      return "the translation is much shorter than the source; parts are probably missing";
    case TranslationWarning::too_long:
      return "the translation is much longer than the source";
  }
  return "";
}

Json to_json(const Translation& translation, const TranslateFlags& flags) {
  Json json{{"text", translation.text},
            {"score", translation.scores.front()},
            {"sentences", translation.sentences},
            {"truncated", translation.truncated},
            {"warning", warning_json(translation.warning)}};
  if (flags.search.has("nbest")) {
    Json& list = json["alternatives"] = Json::array();
    for (size_t i = 0; i < translation.alternatives.size(); ++i) {
      list.push_back({{"text", translation.alternatives[i]}, {"score", translation.scores[i]}});
    }
  }
  if (flags.alignments) {
    Json& list = json["alignments"] = Json::array();
    for (const Alignment& a : translation.alignments) {
      list.push_back({{"source", {a.source.begin, a.source.end}},
                      {"target", {a.target.begin, a.target.end}},
                      {"weight", a.weight}});
    }
  }
  return json;
}

TranslateOptions translate_options(const TranslateFlags& flags, SearchOptions search) {
  search.alignments = flags.alignments;
  return {.search = std::move(search),
          .format = flags.format,
          .split_sentences = !flags.no_split,
          .source_prefix = flags.source_prefix,
          .prefix = flags.prefix,
          .source_language = flags.source_language,
          .target_language = flags.target_language};
}

// Each file is one document.
void translate_documents(const TranslateFlags& flags, const Model& model,
                         const SearchOptions& search, Output& out) {
  if (!flags.json && (flags.search.has("nbest") || flags.scores || flags.alignments)) {
    throw Error(ErrorCode::invalid_argument,
                "--nbest, --scores and --alignments must be with --json if --format is " +
                    std::string(name_of(flags.format)),
                "a document has many lines: add --json");
  }
  Translator translator(model, engine_options(flags));
  Json all = Json::array();
  const std::vector<std::string> paths =
      flags.files.empty() ? std::vector<std::string>{"-"} : flags.files;
  for (const std::string& path : paths) {
    LineFeed feed({path});
    std::string document;
    for (std::vector<std::string> lines; feed.next(kMostLines, lines);) {
      for (const std::string& line : lines) document += line + "\n";
    }
    const Translation translation =
        translator.translate(document, translate_options(flags, search));
    const std::string warning = warning_text(translation);
    if (!warning.empty()) {
      print_message("warning",
                    path + ": " + (translation.truncated ? "a sentence " : "") + warning);
    }
    if (flags.json) {
      all.push_back(to_json(translation, flags));
    } else {
      out.write(translation.text);
    }
  }
  if (flags.json) out.write(json_line(Json{{"translations", std::move(all)}}));
}

void translate_lines(const TranslateFlags& flags, const Model& model, const SearchOptions& search,
                     Output& out) {
  const TranslateOptions options = translate_options(flags, search);
  Translator translator(model, engine_options(flags));
  LineFeed feed(flags.files);
  ProgressLine progress;
  Json all = Json::array();
  size_t line = 0;
  bool has_warned_of_bytes = false;
  for (std::vector<std::string> lines; feed.next(kMostLines, lines);) {
    const auto broken = std::ranges::find_if_not(lines, is_text);
    if (broken != lines.end() && !has_warned_of_bytes) {
      has_warned_of_bytes = true;
      progress.clear();
      print_message("warning", "line " + std::to_string(line + 1 + (broken - lines.begin())) +
                                   " is not UTF-8 text; the translation of such lines means "
                                   "nothing (convert them first, e.g. with iconv)");
    }
    translator.translate(lines, options, [&](size_t, Translation&& translation) {
      ++line;
      const std::string warning = warning_text(translation);
      if (!warning.empty()) {
        progress.clear();
        print_message("warning", "line " + std::to_string(line) +
                                     (translation.truncated ? " " : ": ") + warning);
      }
      if (flags.json) {
        all.push_back(to_json(translation, flags));
      } else {
        out.write(to_text(translation, line, flags));
      }
      progress.show(std::to_string(line) + " lines");
    });
    if (!flags.json) out.flush();
  }
  if (!flags.json) return;
  Json json{{"translations", std::move(all)}};
  if (is_random(*options.search)) json["seed"] = options.search->seed;
  out.write(json_line(json));
}

void run_translate(const TranslateFlags& flags, Output& out) {
  const Model model = load_model(flags, "translate");
  if (!model.has_source()) {
    throw Error(ErrorCode::unsupported,
                flags.model + ": a model of family " + model.family() + " does not translate",
                model.can_generate() ? "use 'heed generate' with it"
                                     : "translation needs an encoder_decoder model");
  }
  const SearchOptions search = search_options(flags, Translator::default_search(model));
  if (!flags.inputs.empty()) {
    out.write(run_inputs(flags, model, search));
  } else if (flags.format == TextFormat::text) {
    translate_lines(flags, model, search, out);
  } else {
    translate_documents(flags, model, search, out);
  }
}

}  // namespace

void add_translate(Program& program) {
  const Command translate = program.add_verb("translate", "Translate lines of text");
  const auto flags = std::make_shared<TranslateFlags>();
  add_arguments(translate, "FILE", flags->files,
                "text, one line after the other; - or none: stdin");
  add_search_flags(translate, *flags);
  add_switch(translate, "--alignments", flags->alignments,
             "print which part of the source each token comes from");
  add_switch(translate, "--no-split", flags->no_split, "do not split lines into sentences");
  add_value(translate, "--format", "NAME",
            "what FILE is written in: " + choices_of<TextFormat>() + " (default text)",
            [flags, translate](const std::string& text) {
              const std::optional<TextFormat> format = from_name<TextFormat>(text);
              if (!format) {
                throw Error(ErrorCode::invalid_argument,
                            "--format must be " + choices_of<TextFormat>() + ", got '" + text + "'",
                            flag_help(translate, "--format"));
              }
              flags->format = *format;
            });
  add_text(translate, "--source-prefix", flags->source_prefix, "TEXT",
           "task prefix before every sentence, e.g. for T5");
  add_text(translate, "--source-language", flags->source_language, "NAME",
           "source language of a multilingual model: fr, or a language token");
  add_text(translate, "--target-language", flags->target_language, "NAME",
           "target language of a multilingual model");
  translate.footer(kHelp);
  translate.on_run([flags](Output& out) { run_translate(*flags, out); });
}

}  // namespace heed::cli
