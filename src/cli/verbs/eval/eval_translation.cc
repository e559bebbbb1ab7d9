// heed eval bleu, chrf and ter.
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs/eval/eval_topics.h"
#include "heed/error.h"
#include "heed/metrics.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "FILE and each --ref have one segment per line. With --refs-tsv or --skip-empty-refs the\n"
    "number of references may vary per segment. Scores and signatures equal sacreBLEU's.";

// sacreBLEU's threshold for the warning.
constexpr int64_t kManyTokenizedLines = 100;

struct TranslationFlags : EvalFlags {
  std::vector<std::string> refs;
  std::string refs_tsv;
  bool skip_empty_refs = false;
  bool sentence = false;
  int width = 2;
};

void add_translation_flags(Command topic, TranslationFlags& flags) {
  add_argument(topic, "FILE", flags.input, "translations, one per line");
  add_texts(topic, "--ref", flags.refs, "FILE", "reference file; may be repeated");
  add_text(topic, "--refs-tsv", flags.refs_tsv, "FILE",
           "or TSV: source<tab>reference[<tab>reference…]");
  add_switch(topic, "--skip-empty-refs", flags.skip_empty_refs,
             "ignore empty lines of --ref files");
  add_switch(topic, "--sentence", flags.sentence, "score each line separately");
  add_number(topic, "--width", flags.width, {.min = 0, .max = 17}, "decimals to print");
  add_common_flags(topic, flags);
}

struct Translations {
  std::vector<std::string> hypotheses;
  References references;
};

References read_references(const TranslationFlags& flags, size_t segments) {
  if (!flags.refs_tsv.empty()) {
    const std::vector<std::string> lines = read_some_lines(flags.refs_tsv);
    check_line_counts(flags.input, segments, flags.refs_tsv, lines.size());
    return references_from_tsv(lines);
  }
  std::vector<std::vector<std::string>> files;
  for (const std::string& path : flags.refs) {
    files.push_back(read_some_lines(path));
    check_line_counts(flags.input, segments, path, files.back().size());
  }
  const References references = as_references(files);
  return flags.skip_empty_refs ? without_empty(references) : references;
}

Translations read_translations(const TranslationFlags& flags) {
  if (flags.refs.empty() == flags.refs_tsv.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed eval: either --ref or --refs-tsv must be given",
                "heed eval bleu --ref REFERENCE OUTPUT");
  }
  Translations result{.hypotheses = read_some_lines(flags.input), .references = {}};
  result.references = read_references(flags, result.hypotheses.size());
  return result;
}

// Prints the corpus score or the score of each line. `score` takes hypotheses and references,
// `to_json` its result.
template <class Score, class ToJson>
void print_scores(const TranslationFlags& flags, Output& out, Score score, ToJson to_json) {
  const Translations input = read_translations(flags);
  if (!flags.sentence) {
    const auto result = score(input.hypotheses, input.references);
    out.write((flags.json ? to_json(result).dump(2) : result.text(flags.width)) + "\n");
    return;
  }
  Json scores = Json::array();
  std::string signature;
  for (size_t i = 0; i < input.hypotheses.size(); ++i) {
    const auto result = score({input.hypotheses[i]}, {input.references[i]});
    if (!flags.json) out.write(result.text(flags.width) + "\n");
    scores.push_back(result.score);
    if (i == 0) signature = result.signature;
  }
  if (flags.json) {
    out.write(Json{{"scores", std::move(scores)}, {"signature", signature}}.dump(2) + "\n");
  }
}

struct BleuFlags : TranslationFlags {
  BleuOptions options;
  bool force = false;
};

void warn_of_tokenized_text(const BleuScore& score) {
  if (score.tokenized_lines < kManyTokenizedLines) return;
  std::fprintf(stderr,
               "warning: %lld lines end in a tokenized period (' .'): scores of text that is not "
               "detokenized are not comparable; --force silences this\n",
               static_cast<long long>(score.tokenized_lines));
}

void run_bleu(BleuFlags& flags, Output& out) {
  if (flags.sentence) flags.options.effective_order = true;
  const auto score = [&flags](const std::vector<std::string>& hypotheses,
                              const References& references) {
    BleuScore result = bleu(hypotheses, references, flags.options);
    if (!flags.force) warn_of_tokenized_text(result);
    return result;
  };
  print_scores(flags, out, score, [](const BleuScore& result) {
    return Json{{"score", result.score},     {"precisions", result.precisions},
                {"bp", result.bp},           {"sys_len", result.sys_len},
                {"ref_len", result.ref_len}, {"signature", result.signature}};
  });
}

void add_bleu(Command eval) {
  const Command topic = eval.add_topic("bleu", "BLEU");
  const auto flags = std::make_shared<BleuFlags>();
  BleuOptions& options = flags->options;
  add_translation_flags(topic, *flags);
  add_text(topic, "--tokenize", options.tokenize, "NAME", "13a, intl, zh, char or none");
  add_text(topic, "--smooth", options.smooth, "NAME", "exp, floor, add-k or none");
  add_number(topic, "--smooth-value", options.smooth_value, {.min = 0},
             "smoothing value (default 0.1 for floor, 1 for add-k)");
  add_switch(topic, "--lowercase", options.lowercase, "ignore case");
  add_switch(topic, "--effective-order", options.effective_order,
             "ignore n-gram orders without matches; always on with --sentence");
  add_switch(topic, "--force", flags->force, "do not warn about text that looks tokenized");
  topic.footer(kHelp);
  topic.on_run([flags](Output& out) { run_bleu(*flags, out); });
}

struct ChrfFlags : TranslationFlags {
  ChrfOptions options;
};

void run_chrf(const ChrfFlags& flags, Output& out) {
  const auto score = [&flags](const std::vector<std::string>& hypotheses,
                              const References& references) {
    return chrf(hypotheses, references, flags.options);
  };
  print_scores(flags, out, score, [](const ChrfScore& result) {
    return Json{{"score", result.score}, {"name", result.name}, {"signature", result.signature}};
  });
}

void add_chrf(Command eval) {
  const Command topic = eval.add_topic("chrf", "chrF and chrF++");
  const auto flags = std::make_shared<ChrfFlags>();
  ChrfOptions& options = flags->options;
  add_translation_flags(topic, *flags);
  add_number(topic, "--char-order", options.char_order, {.min = 0, .max = 100},
             "maximum order of character n-grams");
  add_number(topic, "--word-order", options.word_order, {.min = 0, .max = 100},
             "maximum order of word n-grams; 2: chrF++");
  add_number(topic, "--beta", options.beta, {.min = 0, .max = 1000},
             "weight of recall against precision");
  add_switch(topic, "--lowercase", options.lowercase, "ignore case");
  add_switch(topic, "--whitespace", options.whitespace, "include white space");
  add_switch(topic, "--eps-smoothing", options.eps_smoothing,
             "epsilon smoothing, as in chrF++.py, NLTK and Moses");
  topic.footer(kHelp);
  topic.on_run([flags](Output& out) { run_chrf(*flags, out); });
}

struct TerFlags : TranslationFlags {
  TerOptions options;
};

void run_ter(const TerFlags& flags, Output& out) {
  const auto score = [&flags](const std::vector<std::string>& hypotheses,
                              const References& references) {
    return ter(hypotheses, references, flags.options);
  };
  print_scores(flags, out, score, [](const TerScore& result) {
    return Json{{"score", result.score},
                {"edits", result.edits},
                {"ref_len", result.ref_len},
                {"signature", result.signature}};
  });
}

void add_ter(Command eval) {
  const Command topic = eval.add_topic("ter", "Translation edit rate (TER); lower is better");
  const auto flags = std::make_shared<TerFlags>();
  TerOptions& options = flags->options;
  add_translation_flags(topic, *flags);
  add_switch(topic, "--normalized", options.normalized, "tokenize punctuation first");
  add_switch(topic, "--no-punct", options.no_punct, "drop punctuation");
  add_switch(topic, "--asian-support", options.asian_support,
             "with the two above: treat Chinese and Japanese characters as words");
  add_switch(topic, "--case-sensitive", options.case_sensitive, "do not ignore case");
  topic.footer(kHelp);
  topic.on_run([flags](Output& out) { run_ter(*flags, out); });
}

}  // namespace

void add_eval_translation(Command eval) {
  add_bleu(eval);
  add_chrf(eval);
  add_ter(eval);
}

}  // namespace heed::cli
