// heed generate: a prompt in, what follows out.
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"
#include "cli/program.h"
#include "cli/search_flags.h"
#include "cli/table.h"
#include "heed/error.h"
#include "heed/metrics.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "What follows the prompt is written as it is found. Without --prompt, standard input is the\n"
    "prompt. Where neither flags nor the model's generation_config.json say otherwise the "
    "likeliest\n"
    "token is taken each time; any of --temperature, --top-k, --top-p and --min-p draws instead.\n"
    "It ends where the model ends it, or after 128 tokens unless --max-new-tokens or the model's\n"
    "files say how many. Encoder-decoder models such as T5 take the prompt as their source and\n"
    "write at most 64 tokens and three for each of the source.\n"
    "\n"
    "Examples:\n"
    "  heed generate --model DIR --prompt 'Once upon a time' --max-new-tokens 100\n"
    "  heed generate --model DIR --prompt 'Once' --temperature 0.8 --top-p 0.95 --seed 7\n"
    "  heed generate --model DIR --inputs ids.json --json --beam 4";

struct GenerateFlags : SearchFlags {
  std::string prompt;
  bool has_prompt = false;
  std::optional<double> temperature, top_p, min_p;
  std::optional<int> top_k;
  std::vector<std::string> stop;
};

SearchOptions generate_options(const GenerateFlags& flags, const Model& model) {
  SearchOptions o = search_options(flags, model, {});
  o.stop = flags.stop;
  if (flags.temperature || flags.top_k || flags.top_p || flags.min_p) {
    if (flags.greedy || flags.beam.value_or(1) > 1) {
      throw Error(ErrorCode::invalid_argument,
                  "--temperature, --top-k, --top-p and --min-p draw tokens, which --greedy and "
                  "--beam do not",
                  "give one kind of search");
    }
    o.sample = true, o.beam = 1;
  }
  o.temperature = flags.temperature.value_or(o.temperature);
  o.top_k = flags.top_k.value_or(o.top_k);
  o.top_p = flags.top_p.value_or(o.top_p);
  o.min_p = flags.min_p.value_or(o.min_p);
  check_flags(o);
  check(o);
  return o;
}

std::string read_prompt() {
  std::string text;
  for (const std::string& line : read_lines("-")) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::string to_json(const Result& result, const GenerateFlags& flags) {
  Json sequences = Json::array(), scores = Json::array(), texts = Json::array(),
       finish = Json::array();
  for (const Answer& answer : result.answers) {
    sequences.push_back(answer.ids), scores.push_back(answer.score);
    texts.push_back(answer.text), finish.push_back(name(answer.finish));
  }
  const auto list = [&](Json& values) { return flags.nbest ? Json::array({values}) : values; };
  const Json json{{"sequences", list(sequences)},
                  {"scores", list(scores)},
                  {"texts", list(texts)},
                  {"finish", list(finish)}};
  return json_line(json);
}

// Says so when a text is shorter than was asked for because the model has no more positions.
void warn_of_positions(const Result& result, const SearchOptions& search, const Model& model) {
  const Answer& best = result.best();
  if (best.finish != FinishReason::length || best.new_tokens >= search.max_new_tokens) return;
  std::fprintf(
      stderr, "warning: the model has %lld positions, so the text ends after %lld tokens\n",
      static_cast<long long>(model.max_positions()), static_cast<long long>(best.new_tokens));
}

void generate_text(const GenerateFlags& flags, const Model& model, const SearchOptions& search,
                   Output& out) {
  model.tokenizer();  // or says that there is none
  Engine engine(model, engine_options(flags));
  Request request{.text = flags.has_prompt ? flags.prompt : read_prompt(),
                  .prefix = flags.prefix,
                  .search = search};
  const bool streams = !flags.json && !flags.scores && search.beam == 1 && search.nbest == 1;
  if (!streams) {
    const Result result = engine.submit(request).get();
    warn_of_positions(result, search, model);
    if (flags.json) return out.write(to_json(result, flags));
    for (const Answer& answer : result.answers) {
      out.write((flags.scores ? fixed(answer.score, 6) + "\t" : "") + answer.text + "\n");
    }
    return;
  }
  const Callbacks callbacks{.piece = [&out](const StreamPiece& piece) {
    if (piece.text.empty()) return;
    out.write(piece.text);
    out.flush();
  }};
  const Result result = engine.submit(request, callbacks).get();
  out.write("\n");
  warn_of_positions(result, search, model);
}

void run_generate(GenerateFlags& flags, Output& out) {
  const Model model = load_model(flags, "generate");
  if (!model.can_generate()) {
    throw Error(ErrorCode::unsupported,
                flags.model + ": a model of family " + model.family() + " with head " +
                    model.head() + " does not generate text",
                "this needs a decoder and a language_model head");
  }
  const SearchOptions search = generate_options(flags, model);
  if (flags.inputs.empty()) {
    generate_text(flags, model, search, out);
  } else {
    out.write(run_inputs(flags, model, search));
  }
}

}  // namespace

void add_generate(Program& program) {
  const Command generate = program.add_verb("generate", "Continue a prompt");
  const auto flags = std::make_shared<GenerateFlags>();
  add_text(generate, "--prompt", flags->prompt, "TEXT", "what the text begins with, or the source");
  add_number(generate, "--temperature", flags->temperature, {.min = 0, .max = 1000},
             "draw: below 1 likelier tokens are favoured, above 1 unlikelier");
  add_number(generate, "--top-k", flags->top_k, {.min = 0}, "draw one of the K likeliest");
  add_number(generate, "--top-p", flags->top_p, {.min = 0.000001, .max = 1},
             "draw one of the likeliest with this probability together");
  add_number(generate, "--min-p", flags->min_p, {.min = 0, .max = 1},
             "draw none less likely than this times the likeliest");
  add_texts(generate, "--stop", flags->stop, "TEXT", "ends the text; may be given again");
  add_search_flags(generate, *flags);
  generate.footer(kHelp);
  generate.on_run([flags, generate](Output& out) {
    flags->has_prompt = generate.given("--prompt");
    run_generate(*flags, out);
  });
}

}  // namespace heed::cli
