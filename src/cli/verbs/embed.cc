// heed embed: text embeddings and cosine similarity.
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
    "Prints one vector per line. Pooling is read from the model's sentence-transformers files;\n"
    "the default is the mean over the tokens, normalized. With --similarity each line is two\n"
    "texts, and their cosine similarity is printed.\n"
    "\n"
    "Examples:\n"
    "  heed embed --model DIR sentences.txt --out vectors.safetensors\n"
    "  printf 'A cat.\\tThe dog.\\n' | heed embed --model DIR --similarity\n"
    "  sed 's/.*,//' stsb-en-dev.csv > gold.txt      # the scores, the last of three columns\n"
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
                "--pooling must be mean, first or last, got '" + flags.pooling + "'",
                "mean of all tokens, first token (BERT's [CLS]), or last token");
  }
  if (flags.no_normalize) options.normalize = false;
  if (flags.long_text == "chunks") {
    options.long_text = LongText::chunks;
  } else if (flags.long_text != "truncate") {
    throw Error(ErrorCode::invalid_argument,
                "--long-text must be truncate or chunks, got '" + flags.long_text + "'",
                "truncate drops the rest; chunks embeds all parts and takes the mean");
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
    throw Error(
        ErrorCode::invalid_argument,
        "line " + std::to_string(number) + ": " +
            (quoted ? "unclosed quotation mark" : "must have two columns separated by a comma"),
        "with --csv each line is first,second[,…]");
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
    throw Error(ErrorCode::invalid_argument, "--csv requires --similarity", kExample);
  }
  if (flags.similarity && !flags.out.empty()) {
    throw Error(ErrorCode::invalid_argument, "--out and --similarity must not be combined",
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
  const Command embed = program.add_verb("embed", "Compute text embeddings");
  const auto flags = std::make_shared<EmbedFlags>();
  add_text(embed, "--pooling", flags->pooling, "NAME",
           "mean, first or last (default: from the model's files)");
  add_switch(embed, "--no-normalize", flags->no_normalize,
             "do not normalize the vectors to length 1");
  add_text(embed, "--long-text", flags->long_text, "NAME",
           "long texts: truncate, or chunks (mean over chunks)");
  add_switch(embed, "--similarity", flags->similarity,
             "each line is two texts separated by a tab: print their cosine similarity");
  add_switch(embed, "--csv", flags->csv, "with --similarity: read CSV, first two columns");
  add_text(embed, "--out", flags->out, "FILE", "write all vectors to a safetensors file");
  add_line_flags(embed, *flags);
  embed.footer(kHelp);
  embed.on_run([flags](Output& out) { run_embed(*flags, out); });
}

}  // namespace heed::cli
