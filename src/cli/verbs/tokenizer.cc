// heed tokenizer: train, encode, decode, info.
#include "heed/tokenizer.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files/text_file.h"
#include "base/text/json_text.h"
#include "cli/flags.h"
#include "cli/out_folder.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTrainHelp =
    "Types:\n"
    "  bpe, unigram  SentencePiece: spiece.model, with <pad> 0, </s> 1, <unk> 2 as in T5\n"
    "  byte-bpe      GPT-2's byte-level BPE: tokenizer.json, vocab.json, merges.txt\n"
    "  roberta       the same with RoBERTa's <s>, <pad>, </s>, <unk>, <mask>\n"
    "  wordpiece     BERT's WordPiece: tokenizer.json, vocab.txt\n"
    "  char          the characters of the text, at most --vocab\n"
    "  byte          ByT5's bytes; needs no text\n"
    "\n"
    "Files are plain text, .gz or .zst, one sentence per line. The result does not depend on the\n"
    "number of threads.\n"
    "\n"
    "Example:\n"
    "  heed tokenizer train --type bpe --vocab 8000 --out tokenizer train.en train.de";

constexpr const char* kEncodeHelp =
    "Prints one line per input line: ids separated by spaces, or with --json an object {\"ids\",\n"
    "\"pieces\", \"offsets\"}; offsets are byte ranges [begin, end) of the line. --type char "
    "without\n"
    "a file uses printable ASCII, tab and newline.\n"
    "\n"
    "Example:\n"
    "  echo 'Hello world' | heed tokenizer encode --model DIR";

constexpr const char* kDecodeHelp =
    "A line is ids separated by spaces, a JSON list of ids, or an object with \"ids\" as from\n"
    "encode --json. Prints one text per line; with --json {\"text\"}.\n"
    "\n"
    "Example:\n"
    "  heed tokenizer encode --model DIR text | heed tokenizer decode --model DIR";

struct TokenizerFlags {
  std::string model, tokenizer, type;
  std::string side;
  bool no_special = false, special = false, json = false;
  std::vector<std::string> files;
};

TokenizerPtr open_tokenizer(const TokenizerFlags& flags, const std::string& verb) {
  const int given = !flags.model.empty() + !flags.tokenizer.empty() + !flags.type.empty();
  if (given != 1) {
    throw Error(ErrorCode::invalid_argument,
                verb + ": exactly one of --model, --tokenizer and --type must be given",
                verb + " --model DIR");
  }
  if (!flags.type.empty()) return make_tokenizer(flags.type);
  return load_tokenizer(flags.model.empty() ? flags.tokenizer : flags.model);
}

TextSide side_of(const std::string& text) {
  if (text == "source") return TextSide::source;
  if (text == "target") return TextSide::target;
  throw Error(ErrorCode::invalid_argument, "--side must be source or target, got '" + text + "'",
              "--side is for tokenizers with two languages, such as Marian's");
}

// Calls function(line, reader) for each line of the files, or of standard input.
template <class Function>
void each_line(std::vector<std::string> files, Function function) {
  if (files.empty()) files = {"-"};
  std::string line;
  for (const std::string& file : files) {
    LineReader reader(file);
    while (reader.next(line)) function(line, reader);
  }
}

std::string joined(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (!text.empty()) text += ' ';
    text += std::to_string(id);
  }
  return text;
}

void run_encode(const TokenizerFlags& flags, Output& out) {
  const TokenizerPtr tokenizer = open_tokenizer(flags, "heed tokenizer encode");
  const EncodeOptions options = {.special_tokens = !flags.no_special, .side = side_of(flags.side)};
  each_line(flags.files, [&](const std::string& line, const LineReader&) {
    if (!flags.json) return out.write(joined(tokenizer->encode_ids(line, options)) + "\n");
    const Encoding encoding = tokenizer->encode(line, options);
    Json pieces = Json::array(), offsets = Json::array();
    for (const int32_t id : encoding.ids) pieces.push_back(tokenizer->piece(id));
    for (const TextSpan& span : encoding.offsets) offsets.push_back({span.begin, span.end});
    out.write(json_text(Json{{"ids", encoding.ids}, {"pieces", pieces}, {"offsets", offsets}}) +
              "\n");
  });
}

[[noreturn]] void throw_no_ids(const LineReader& reader, const std::string& found) {
  throw Error(ErrorCode::invalid_argument,
              reader.where() + ": must be ids, got " +
                  (found.size() > 40 ? found.substr(0, 40) + "…" : found),
              "a line is integers separated by spaces, or {\"ids\": [1, 2]}");
}

std::vector<int32_t> ids_of_json(const std::string& line, const LineReader& reader) {
  const Json json = Json::parse(line, nullptr, false);
  const Json* list = &json;
  if (json.is_object() && json.contains("ids")) list = &json["ids"];
  if (!list->is_array()) throw_no_ids(reader, line);
  std::vector<int32_t> ids;
  for (const Json& id : *list) {
    // Nested values are not printed: dump() is recursive.
    if (id.is_structured()) throw_no_ids(reader, id.is_array() ? "a list" : "an object");
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) throw_no_ids(reader, json_text(id));
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::vector<int32_t> ids_of_line(const std::string& line, const LineReader& reader) {
  std::vector<int32_t> ids;
  for (size_t at = line.find_first_not_of(" \t"); at != std::string::npos;
       at = line.find_first_not_of(" \t", at)) {
    if (ids.empty() && (line[at] == '{' || line[at] == '[')) return ids_of_json(line, reader);
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    int32_t id = 0;
    const auto read = std::from_chars(line.data() + at, line.data() + end, id);
    if (read.ec != std::errc() || read.ptr != line.data() + end) {
      throw_no_ids(reader, "'" + line.substr(at, end - at) + "'");
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

void run_decode(const TokenizerFlags& flags, Output& out) {
  const TokenizerPtr tokenizer = open_tokenizer(flags, "heed tokenizer decode");
  const DecodeOptions options = {.skip_special_tokens = !flags.special,
                                 .side = side_of(flags.side)};
  each_line(flags.files, [&](const std::string& line, const LineReader& reader) {
    const std::vector<int32_t> ids = ids_of_line(line, reader);
    std::string text;
    try {
      text = tokenizer->decode(ids, options);
    } catch (const Error& error) {
      throw Error(error.code(), reader.where() + ": " + error.what(), error.hint());
    }
    out.write((flags.json ? json_text(Json{{"text", text}}) : text) + "\n");
  });
}

void run_info(const TokenizerFlags& flags, Output& out) {
  const TokenizerPtr tokenizer = open_tokenizer(flags, "heed tokenizer info");
  const SpecialIds& ids = tokenizer->special_ids();
  const std::vector<int32_t> around = tokenizer->encode_ids("");
  Json specials = Json::object();
  Table table({{"token"}, {"id", Align::right}, {"piece"}});
  for (const auto& [name, id] :
       std::initializer_list<std::pair<const char*, int32_t>>{{"pad", ids.pad},
                                                              {"unknown", ids.unknown},
                                                              {"begin", ids.begin},
                                                              {"end", ids.end},
                                                              {"classify", ids.classify},
                                                              {"separate", ids.separate},
                                                              {"mask", ids.mask}}) {
    if (id < 0) continue;
    specials[name] = {{"id", id}, {"piece", tokenizer->piece(id)}};
    table.add_row({name, std::to_string(id), tokenizer->piece(id)});
  }
  if (flags.json) {
    return out.write(json_text(Json{{"vocabulary", tokenizer->vocabulary_size()},
                                    {"special_tokens", specials},
                                    {"empty_text", around}},
                               2) +
                     "\n");
  }
  out.write("vocabulary   " + std::to_string(tokenizer->vocabulary_size()) + "\n" +
            "empty text   " + (around.empty() ? "no ids" : joined(around)) + "\n\n" + table.text());
}

// The files of all kinds of tokenizers: a leftover of another kind could take precedence.
void remove_tokenizer_files(const std::filesystem::path& folder) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "vocab.json", "vocab.txt", "merges.txt", "spiece.model", "sentencepiece.bpe.model",
        "tokenizer.model", "spm.model", "source.spm", "target.spm"}) {
    std::error_code error;
    std::filesystem::remove(folder / name, error);
    if (!error) continue;
    throw Error(ErrorCode::invalid_argument,
                (folder / name).string() + " cannot be removed: " + error.message(),
                "choose a writable folder");
  }
}

struct TrainFlags : CommonFlags {
  TokenizerTraining training;
  int vocabulary = 8000;
  std::string out;
  bool force = false;
};

void run_train(TrainFlags& flags, Output& out) {
  if (flags.out.empty()) {
    throw Error(ErrorCode::invalid_argument, "heed tokenizer train: --out is missing",
                "heed tokenizer train --type bpe --vocab 8000 --out DIR FILE…");
  }
  check_out_folder(/*model=*/"", flags.out, flags.force);
  TokenizerTraining& training = flags.training;
  training.vocabulary = flags.vocabulary;
  training.threads = flags.threads;
  ProgressLine progress;
  training.progress = [&progress](std::string_view phase, double done) {
    progress.show(std::string(phase) + (done < 0 ? "" : " " + fixed(100 * done, 0) + " %"));
  };
  TokenizerTrainingReport report;
  const TokenizerPtr tokenizer = train_tokenizer(training, &report);
  progress.clear();
  remove_tokenizer_files(flags.out);
  tokenizer->save(flags.out);
  if (flags.json) {
    return out.write(json_text(Json{{"type", training.type},
                                    {"vocabulary", tokenizer->vocabulary_size()},
                                    {"lines", report.lines},
                                    {"bytes", report.bytes},
                                    {"empty_lines", report.empty_lines},
                                    {"invalid_lines", report.invalid_lines},
                                    {"skipped_lines", report.skipped_lines},
                                    {"out", flags.out}},
                               2) +
                     "\n");
  }
  out.write("saved " + training.type + " tokenizer, vocabulary " +
            std::to_string(tokenizer->vocabulary_size()) + ", in " + flags.out + "\n");
  if (report.lines > 0) {
    out.write("read " + std::to_string(report.lines) + " lines, " + std::to_string(report.bytes) +
              " bytes; " + std::to_string(report.empty_lines) + " empty, " +
              std::to_string(report.invalid_lines) + " not UTF-8, " +
              std::to_string(report.skipped_lines) + " too long\n");
  }
}

void add_which_tokenizer(Command command, TokenizerFlags& flags) {
  add_text(command, "--model", flags.model, "DIR", "model folder");
  add_text(command, "--tokenizer", flags.tokenizer, "FILE", "or a tokenizer file");
  add_text(command, "--type", flags.type, "TYPE", "or byte or char, which need no file");
}

void add_train(Command parent) {
  const Command train = parent.add_topic("train", "Train a tokenizer on text");
  const auto flags = std::make_shared<TrainFlags>();
  add_text(train, "--type", flags->training.type, "TYPE",
           "bpe, unigram, byte-bpe, roberta, wordpiece, char or byte");
  add_number(train, "--vocab", flags->vocabulary, {.min = 1, .max = 4'000'000},
             "vocabulary size, including special tokens");
  add_switch(train, "--lowercase", flags->training.lowercase, "lowercase the text");
  add_texts(train, "--special", flags->training.special_tokens, "TOKEN",
            "special token to add; may be repeated");
  add_texts(train, "--symbol", flags->training.user_symbols, "TEXT",
            "bpe, unigram: text that is always one piece; may be repeated");
  add_switch(train, "--byte-fallback", flags->training.byte_fallback,
             "bpe, unigram: unknown characters become pieces of their bytes");
  add_switch(train, "--split-digits", flags->training.split_digits,
             "bpe, unigram: each digit is a piece");
  add_text(train, "--out", flags->out, "DIR", "output folder; must be new or empty");
  add_switch(train, "--force", flags->force, "overwrite the tokenizer in --out");
  add_common_flags(train, *flags);
  add_arguments(train, "FILE", flags->training.files, "training text");
  train.footer(kTrainHelp);
  train.on_run([flags](Output& out) { run_train(*flags, out); });
}

void add_encode(Command parent) {
  const Command encode = parent.add_topic("encode", "Encode text into token ids");
  const auto flags = std::make_shared<TokenizerFlags>();
  flags->side = "source";
  add_which_tokenizer(encode, *flags);
  add_switch(encode, "--no-special", flags->no_special, "do not add special tokens");
  add_text(encode, "--side", flags->side, "SIDE",
           "source or target, for tokenizers with two vocabularies");
  add_switch(encode, "--json", flags->json, "ids, pieces and offsets, one object per line");
  add_arguments(encode, "FILE", flags->files, "text; none or -: standard input");
  encode.footer(kEncodeHelp);
  encode.on_run([flags](Output& out) { run_encode(*flags, out); });
}

void add_decode(Command parent) {
  const Command decode = parent.add_topic("decode", "Decode token ids into text");
  const auto flags = std::make_shared<TokenizerFlags>();
  flags->side = "target";
  add_which_tokenizer(decode, *flags);
  add_switch(decode, "--special", flags->special, "show special tokens too");
  // So that one set of flags fits both directions.
  add_switch(decode, "--no-special", flags->no_special, "leave them out, as is the default");
  add_text(decode, "--side", flags->side, "SIDE",
           "source or target, for tokenizers with two vocabularies");
  add_switch(decode, "--json", flags->json, "one object a line, {\"text\"}");
  add_arguments(decode, "FILE", flags->files, "ids; standard input when there is none, or -");
  decode.footer(kDecodeHelp);
  decode.on_run([flags](Output& out) { run_decode(*flags, out); });
}

void add_info(Command parent) {
  const Command info = parent.add_topic("info", "Show a tokenizer's vocabulary and special tokens");
  const auto flags = std::make_shared<TokenizerFlags>();
  add_which_tokenizer(info, *flags);
  add_switch(info, "--json", flags->json, "as one JSON document");
  info.on_run([flags](Output& out) { run_info(*flags, out); });
}

}  // namespace

void add_tokenizer(Program& program) {
  const Command tokenizer =
      program.add_verb("tokenizer", "Train a tokenizer; encode and decode text");
  add_train(tokenizer);
  add_encode(tokenizer);
  add_decode(tokenizer);
  add_info(tokenizer);
}

}  // namespace heed::cli
