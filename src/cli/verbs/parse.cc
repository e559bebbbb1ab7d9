// heed parse: the constituency tree of each sentence.
#include "heed/tasks.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "heed parse --model DIR sentences.txt";
constexpr const char* kHelp =
    "Words are what white space separates. For each line: its tree, whose words are those of the\n"
    "line and whose tags are all XX; an empty line for an empty one.\n"
    "\n"
    "Example:\n"
    "  heed parse --model DIR dev.words | heed eval brackets --ref dev.mrg";

struct ParseFlags : LineFlags {
  int beam = 0;
};

void run_parse(const ParseFlags& flags, Output& out) {
  const Model model = load_model(flags.model, kExample);
  Parser parser(model, {.threads = flags.threads, .batch_tokens = flags.batch_tokens});
  model.tokenizer();  // to say now what is wrong with it
  // Parsing is told by config.json alone: any encoder-decoder makes trees of some kind.
  if (!model.task().empty() && model.task() != "parsing") {
    print_message("warning", "the model was trained for " + model.task() +
                                 ", not for parsing: the trees mean nothing");
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
  const Command parse = program.add_verb("parse", "Write the constituency trees of sentences");
  const auto flags = std::make_shared<ParseFlags>();
  add_number(parse, "--beam", flags->beam, {.min = 0, .max = 1000},
             "beams of the search; 0 means as the model's files say");
  add_line_flags(parse, *flags);
  parse.footer(kHelp);
  parse.on_run([flags](Output& out) { run_parse(*flags, out); });
}

}  // namespace heed::cli
