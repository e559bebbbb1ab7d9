// heed parse: constituency trees.
#include "heed/tasks.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "heed parse --model DIR sentences.txt";
constexpr const char* kHelp =
    "Words are separated by white space. Prints one tree per line, over the words of the line,\n"
    "with XX as every part-of-speech tag; an empty line for an empty line.\n"
    "\n"
    "Example:\n"
    "  heed parse --model DIR dev.words | heed eval brackets --ref dev.mrg";

struct ParseFlags : LineFlags {
  int beam = 0;
};

void run_parse(const ParseFlags& flags, Output& out) {
  const Model model = load_model(flags.model, kExample, /*takes_text=*/false);
  Parser parser(model, {.threads = flags.threads, .batch_tokens = flags.batch_tokens});
  model.tokenizer();  // throws early if there is none
  // Only config.json tells whether a model was trained to parse.
  if (!model.task().empty() && model.task() != "parsing") {
    print_message("warning", "the model was trained for " + model.task() +
                                 ", not for parsing: the trees are meaningless");
  }
  std::optional<SearchOptions> search;
  if (flags.beam > 0) {
    search = model.search_options();
    search->beam = flags.beam;
  }
  CutLines cut;
  each_lines(flags, [&](const Lines& lines) {
    int64_t number = lines.first;
    for (const Parsed& parsed : parser.parse(lines.texts, search)) {
      out.write(flags.json ? json_line(Json{{"tree", parsed.tree},
                                            {"linear", parsed.linear},
                                            {"score", parsed.score},
                                            {"truncated", parsed.truncated}})
                           : parsed.tree + "\n");
      cut.add(number++, {.tokens = model.max_positions(), .truncated = parsed.truncated});
    }
    out.flush();
  });
  cut.report();
}

}  // namespace

void add_parse(Program& program) {
  const Command parse = program.add_verb("parse", "Parse sentences into constituency trees");
  const auto flags = std::make_shared<ParseFlags>();
  add_number(parse, "--beam", flags->beam, {.min = 0, .max = 1000},
             "beam size; 0: from the model's files");
  add_line_flags(parse, *flags);
  parse.footer(kHelp);
  parse.on_run([flags](Output& out) { run_parse(*flags, out); });
}

}  // namespace heed::cli
