// heed generate: continues a prompt.
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
    "The continuation is printed as it is decoded. Without --prompt, the prompt is read from\n"
    "standard input. Unless flags or the model's generation_config.json set another search, it is\n"
    "greedy; any of --temperature, --top-k, --top-p and --min-p samples, with another random seed\n"
    "at each run unless --seed sets it. A prompt beyond the context length is an error unless\n"
    "--truncate cuts it. Generation ends at an end token (EOS), or after 128 tokens unless\n"
    "--max-new-tokens or the model's files set another maximum. Encoder-decoder models such as T5\n"
    "take the prompt as their source; their maximum is 64 tokens plus 3 for each source token.\n"
    "\n"
    "Examples:\n"
    "  heed generate --model DIR --prompt 'Once upon a time' --max-new-tokens 100\n"
    "  heed generate --model DIR --prompt 'Once' --temperature 0.8 --top-p 0.95 --seed 7\n"
    "  heed generate --model DIR --inputs ids.json --json --beam 4";

struct GenerateFlags : SearchFlags {
  std::string prompt;
  bool has_prompt = false;
};

std::string read_prompt() {
  std::string text;
  for (const std::string& line : read_lines("-")) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::string to_json(const Result& result, const SearchOptions& search, const GenerateFlags& flags) {
  Json sequences = Json::array(), scores = Json::array(), texts = Json::array(),
       finish = Json::array();
  for (const Answer& answer : result.answers) {
    sequences.push_back(answer.ids), scores.push_back(answer.score);
    texts.push_back(answer.text), finish.push_back(name_of(answer.finish));
  }
  const auto list = [&](Json& values) {
    return flags.search.has("nbest") ? Json::array({values}) : values;
  };
  Json json{{"sequences", list(sequences)},
            {"scores", list(scores)},
            {"texts", list(texts)},
            {"finish", list(finish)},
            {"truncated", result.truncated}};
  if (is_random(search)) json["seed"] = result.seed;
  return json_line(json);
}

// Warns that the context length ended the answer before the requested maximum.
void warn_of_positions(const Result& result, const SearchOptions& search, const Model& model) {
  const Answer& best = result.best();
  if (best.finish != FinishReason::length || best.new_tokens >= search.max_new_tokens) return;
  const int64_t context = model.has_source() ? model.max_positions() : model.context_length();
  std::fprintf(stderr,
               "warning: the context length of %lld tokens ended the answer after %lld tokens\n",
               static_cast<long long>(context), static_cast<long long>(best.new_tokens));
}

void generate_text(const GenerateFlags& flags, const Model& model, const SearchOptions& search,
                   Output& out) {
  model.tokenizer();  // throws if there is none
  Engine engine(model, engine_options(flags));
  Request request{.text = flags.has_prompt ? flags.prompt : read_prompt(),
                  .prefix = flags.prefix,
                  .search = search,
                  .truncate = flags.truncate};
  const bool streams = !flags.json && !flags.scores && search.beam == 1 && search.nbest == 1;
  if (!streams) {
    const Result result = engine.submit(request).get();
    if (result.truncated) warn_of_truncation(result, "the prompt");
    warn_of_positions(result, search, model);
    if (flags.json) return out.write(to_json(result, search, flags));
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
  if (result.truncated) warn_of_truncation(result, "the prompt");
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
  const SearchOptions search = search_options(flags, model.search_options());
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
  add_text(generate, "--prompt", flags->prompt, "TEXT",
           "the prompt, or the source of an encoder-decoder model");
  add_search_flags(generate, *flags);
  add_truncate_flag(generate, *flags);
  generate.footer(kHelp);
  generate.on_run([flags, generate](Output& out) {
    flags->has_prompt = generate.given("--prompt");
    run_generate(*flags, out);
  });
}

}  // namespace heed::cli
