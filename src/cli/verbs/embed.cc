// heed embed: texts as vectors, and how alike two texts are.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/line_verb.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExample = "heed embed --model DIR sentences.txt";
constexpr const char* kHelp =
    "For each line: the numbers of its vector, separated by spaces. How vectors are pooled comes "
    "from\n"
    "the model's sentence-transformers files; without them it is the mean of the tokens, of length "
    "1.\n"
    "With --similarity each line is two texts, and the answer the cosine of their vectors.\n"
    "\n"
    "Examples:\n"
    "  heed embed --model DIR sentences.txt --out vectors.safetensors\n"
    "  printf 'A cat.\\tThe dog.\\n' | heed embed --model DIR --similarity\n"
    "  sed 's/.*,//' stsb-en-dev.csv > gold.txt      # the scores, the last of its three columns\n"
    "  heed embed --model DIR --similarity --csv stsb-en-dev.csv | heed eval spearman --ref "
    "gold.txt";

struct EmbedFlags : LineFlags {
  std::string pooling, long_text = "truncate", out;
  bool no_normalize = false, similarity = false, csv = false;
};

EmbedOptions embed_options_of(const EmbedFlags& flags) {
  EmbedOptions options;
  if (flags.pooling.empty()) {
    options = embed_options(flags.model);
  } else if (flags.pooling == "first" || flags.pooling == "cls") {
    options.pooling = EmbedPooling::first;
  } else if (flags.pooling == "last") {
    options.pooling = EmbedPooling::last;
  } else if (flags.pooling != "mean") {
    throw Error(ErrorCode::invalid_argument,
                "--pooling: expected mean, first or last, found '" + flags.pooling + "'",
                "mean of all tokens, the first one (BERT's [CLS]), or the last one");
  }
  if (flags.no_normalize) options.normalize = false;
  if (flags.long_text == "chunks") {
    options.long_text = LongText::chunks;
  } else if (flags.long_text != "truncate") {
    throw Error(ErrorCode::invalid_argument,
                "--long-text: expected truncate or chunks, found '" + flags.long_text + "'",
                "truncate reads the beginning; chunks reads all, and takes the mean of its parts");
  }
  return options;
}

// The first two columns of a line of comma-separated values (RFC 4180; no line breaks in quotes).
TaskInput split_csv(const std::string& line, int64_t number) {
  std::vector<std::string> columns{""};
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      columns.back() += line[++i];
    } else if (c == '"' && (quoted || columns.back().empty())) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      columns.emplace_back();
    } else {
      columns.back() += c;
    }
  }
  if (columns.size() < 2 || quoted) {
    throw Error(ErrorCode::invalid_argument,
                "line " + std::to_string(number) + ": " +
                    (quoted ? "a quotation mark is not closed"
                            : "expected two columns with a comma between"),
                "with --csv each line is first,second and maybe more columns");
  }
  return {.text = columns[0], .second = columns[1]};
}

std::string vector_text(const std::vector<float>& vector) {
  std::string text;
  for (const float x : vector) text += (text.empty() ? "" : " ") + shortest(x);
  return text + "\n";
}

Json to_json(const Embedded& embedded) {
  return {{"vector", embedded.vector},
          {"tokens", embedded.tokens},
          {"chunks", embedded.chunks},
          {"truncated", embedded.truncated}};
}

void run_similarity(const EmbedFlags& flags, const Embedder& embedder, const EmbedOptions& options,
                    Output& out) {
  CutLines cut;
  each_lines(flags, [&](const Lines& lines) {
    std::vector<TaskInput> inputs;  // first, second, first, second …
    int64_t number = lines.first;
    for (const std::string& line : lines.texts) {
      TaskInput pair = flags.csv ? split_csv(line, number) : split_pair(line, number);
      inputs.push_back({.text = std::move(pair.text)});
      inputs.push_back({.text = std::move(*pair.second)});
      ++number;
    }
    const std::vector<Embedded> results = embedder.embed(inputs, options);
    for (size_t i = 0; i + 1 < results.size(); i += 2) {
      const double similarity = cosine_similarity(results[i].vector, results[i + 1].vector);
      TaskResult both = results[i];
      both.truncated = both.truncated || results[i + 1].truncated;
      both.tokens = std::max(both.tokens, results[i + 1].tokens);
      out.write(flags.json
                    ? json_line(Json{{"similarity", similarity}, {"truncated", both.truncated}})
                    : fixed(similarity, 6) + "\n");
      cut.add(lines.first + static_cast<int64_t>(i / 2), both);
    }
    out.flush();
  });
  cut.report();
}

void run_embed(const EmbedFlags& flags, Output& out) {
  if (flags.csv && !flags.similarity) {
    throw Error(ErrorCode::invalid_argument, "--csv goes with --similarity", kExample);
  }
  if (flags.similarity && !flags.out.empty()) {
    throw Error(ErrorCode::invalid_argument, "--out writes vectors, --similarity has none",
                kExample);
  }
  const Embedder embedder(load_model(flags.model, kExample), flags.task_options());
  const EmbedOptions options = embed_options_of(flags);
  if (flags.similarity) return run_similarity(flags, embedder, options, out);
  CutLines cut;
  std::vector<std::vector<float>> kept;
  each_lines(flags, [&](const Lines& lines) {
    std::vector<TaskInput> inputs;
    for (const std::string& text : lines.texts) inputs.push_back({.text = text});
    int64_t number = lines.first;
    for (Embedded& result : embedder.embed(inputs, options)) {
      cut.add(number++, result);
      if (flags.out.empty()) {
        out.write(flags.json ? json_line(to_json(result)) : vector_text(result.vector));
      } else {
        kept.push_back(std::move(result.vector));
      }
    }
    out.flush();
  });
  if (!flags.out.empty()) {
    write_embeddings(flags.out, kept);
    if (flags.json) {
      out.write(json_line(
          Json{{"out", flags.out}, {"inputs", kept.size()}, {"width", embedder.width()}}));
    }
  }
  cut.report();
}

}  // namespace

void add_embed(Program& program) {
  const Command embed = program.add_verb("embed", "Turn texts into vectors");
  const auto flags = std::make_shared<EmbedFlags>();
  add_text(embed, "--pooling", flags->pooling, "NAME",
           "mean, first or last; else what the model's files say");
  add_switch(embed, "--no-normalize", flags->no_normalize, "leave vectors as long as they are");
  add_text(embed, "--long-text", flags->long_text, "NAME",
           "truncate, or chunks: the mean of a long text's parts");
  add_switch(embed, "--similarity", flags->similarity,
             "each line is two texts with a tab between: print the cosine of their vectors");
  add_switch(embed, "--csv", flags->csv, "with --similarity: the first two of columns with commas");
  add_text(embed, "--out", flags->out, "FILE", "write a safetensors file with all vectors");
  add_line_flags(embed, *flags);
  embed.footer(kHelp);
  embed.on_run([flags](Output& out) { run_embed(*flags, out); });
}

}  // namespace heed::cli
