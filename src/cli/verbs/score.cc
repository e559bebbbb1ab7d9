// heed score: log-probability and perplexity of texts.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "heed score --model DIR text.txt";
constexpr const char* kHelp =
    "Prints for each line its natural log-probability, and at the end the perplexity over all\n"
    "tokens. For an encoder-decoder model a line is source<tab>target, and the target is scored.\n"
    "Texts longer than the context are scored in overlapping windows (--window, --stride).\n"
    "\n"
    "Examples:\n"
    "  heed score --model DIR sentences.txt\n"
    "  heed score --model DIR --document --stride 256 book.txt";

struct ScoreFlags : LineFlags {
  bool document = false, tokens = false, no_begin = false, no_end = false;
  int window = 0, stride = 0;
};

struct Total {
  double log_probability = 0;
  int64_t tokens = 0, inputs = 0;

  void add(const Scored& scored) {
    log_probability += scored.log_probability;
    tokens += std::ssize(scored.ids);
    ++inputs;
  }
  double perplexity() const { return std::exp(-log_probability / static_cast<double>(tokens)); }
};

std::string to_text(const Scored& scored, const Tokenizer& tokenizer, bool tokens) {
  std::string text = fixed(scored.log_probability, 4);
  for (size_t t = 0; tokens && t < scored.ids.size(); ++t) {
    text.append("\t").append(tokenizer.piece(scored.ids[t])).append("=");
    text += fixed(scored.token_scores[t], 4);
  }
  return text + "\n";
}

Json to_json(const Scored& scored, const Tokenizer& tokenizer) {
  Json tokens = Json::array();
  for (size_t t = 0; t < scored.ids.size(); ++t) {
    tokens.push_back({{"id", scored.ids[t]},
                      {"piece", tokenizer.piece(scored.ids[t])},
                      {"span", {scored.offsets[t].begin, scored.offsets[t].end}},
                      {"log_probability", scored.token_scores[t]}});
  }
  return {{"log_probability", scored.log_probability},
          {"perplexity", scored.perplexity()},
          {"tokens", std::move(tokens)},
          {"truncated", scored.truncated}};
}

void run_score(const ScoreFlags& flags, Output& out) {
  const Model model = load_model(flags.model, kExample);
  const Scorer scorer(model, flags.task_options());
  const Tokenizer& tokenizer = model.tokenizer();
  if (flags.document && scorer.has_source()) {
    throw Error(ErrorCode::invalid_argument, "--document requires a decoder-only model",
                "an encoder-decoder model scores lines: source<tab>target");
  }
  const ScoreOptions options{.window = flags.window,
                             .stride = flags.stride,
                             .begin = !flags.no_begin,
                             .end = !flags.no_end};
  CutLines cut;
  Total total;
  const auto answer = [&](const std::vector<TaskInput>& inputs, int64_t number) {
    for (const Scored& scored : scorer.score(inputs, options)) {
      out.write(flags.json ? json_line(to_json(scored, tokenizer))
                           : to_text(scored, tokenizer, flags.tokens));
      cut.add(number++, scored);
      total.add(scored);
    }
    out.flush();
  };
  std::string document;
  each_lines(flags, [&](const Lines& lines) {
    std::vector<TaskInput> inputs;
    int64_t number = lines.first;
    for (const std::string& text : lines.texts) {
      if (flags.document) {
        document += (number > 1 ? "\n" : "") + text;
      } else {
        inputs.push_back(scorer.has_source() ? split_pair(text, number) : TaskInput{.text = text});
      }
      ++number;
    }
    if (!flags.document) answer(inputs, lines.first);
  });
  if (flags.document) answer({{.text = std::move(document)}}, 1);
  if (total.tokens == 0) {
    throw Error(ErrorCode::invalid_argument, "nothing to score: no token has a probability",
                "give more text; without BOS the first token has no probability");
  }
  out.write(flags.json ? json_line(Json{{"perplexity", total.perplexity()},
                                        {"log_probability", total.log_probability},
                                        {"scored_tokens", total.tokens},
                                        {"inputs", total.inputs}})
                       : "perplexity " + fixed(total.perplexity(), 4) + " of " +
                             std::to_string(total.tokens) + " tokens\n");
  cut.report();
}

}  // namespace

void add_score(Program& program) {
  const Command score =
      program.add_verb("score", "Compute log-probability and perplexity of texts");
  const auto flags = std::make_shared<ScoreFlags>();
  add_switch(score, "--tokens", flags->tokens, "also print the log-probability of each token");
  add_switch(score, "--document", flags->document, "treat all lines as one text");
  add_number(score, "--window", flags->window, {.min = 0, .max = 1 << 24},
             "window length in tokens; 0: the model's maximum");
  add_number(score, "--stride", flags->stride, {.min = 0, .max = 1 << 24},
             "tokens between the starts of two windows; 0: half a window");
  add_switch(score, "--no-begin", flags->no_begin,
             "do not prepend the BOS token; the first token is then not scored");
  add_switch(score, "--no-end", flags->no_end,
             "do not score the EOS token: for models trained without it");
  add_line_flags(score, *flags);
  score.footer(kHelp);
  score.on_run([flags](Output& out) { run_score(*flags, out); });
}

}  // namespace heed::cli
