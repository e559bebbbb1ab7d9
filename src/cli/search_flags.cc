#include "cli/search_flags.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/line_verb.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMegabyte = 1 << 20;

std::vector<std::vector<int32_t>> read_inputs(const std::string& path, bool has_source) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::not_found, path + ": cannot be opened", "--inputs takes a JSON file");
  }
  const std::string key = has_source ? "sources" : "sequences";
  const Error malformed(
      ErrorCode::invalid_argument,
      path + ": expected a JSON object with \"" + key + "\", a list of lists of whole numbers",
      "for example {\"" + key + "\": [[5, 6, 7], [8, 9]]}");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(key) || !json[key].is_array()) throw malformed;
  std::vector<std::vector<int32_t>> inputs;
  for (const Json& row : json[key]) {
    if (!row.is_array()) throw malformed;
    std::vector<int32_t>& ids = inputs.emplace_back();
    for (const Json& id : row) {
      if (!id.is_number_integer() || !std::in_range<int32_t>(id.get<int64_t>())) throw malformed;
      ids.push_back(id.get<int32_t>());
    }
  }
  return inputs;
}

LengthPenaltyRule rule_named(const std::string& name) {
  if (name == "power") return LengthPenaltyRule::power;
  if (name == "gnmt") return LengthPenaltyRule::gnmt;
  throw Error(ErrorCode::invalid_argument,
              "--length-penalty-rule: expected gnmt or power, found '" + name + "'",
              "power divides by length^P, gnmt by ((5 + length) / 6)^P");
}

}  // namespace

void add_search_flags(Command command, SearchFlags& flags) {
  add_text(command, "--model", flags.model, "DIR", "a model folder");
  add_text(
      command, "--inputs", flags.inputs, "FILE",
      "JSON with raw ids instead of text: \"sources\", or \"sequences\" of decoder-only models");
  add_number(command, "--beam", flags.beam, {.min = 1, .max = 1024},
             "texts to follow at once; 1 takes the likeliest token each time");
  add_switch(command, "--greedy", flags.greedy, "the same as --beam 1");
  add_number(command, "--length-penalty", flags.length_penalty, {.min = -100, .max = 100},
             "how much longer texts are favoured; 0 means not at all");
  add_text(command, "--length-penalty-rule", flags.length_penalty_rule, "NAME",
           "power (default): sum log p / length^P; gnmt: sum log p / ((5 + length) / 6)^P");
  add_switch(command, "--early-stopping", flags.early_stopping,
             "end as soon as there are as many finished texts as beams");
  add_number(command, "--nbest", flags.nbest, {.min = 1, .max = 1024}, "answers to each input");
  add_switch(command, "--scores", flags.scores, "print the score before each text");
  add_number(command, "--max-new-tokens", flags.max_new_tokens, {.min = 1},
             "tokens of an answer, at most");
  add_number(command, "--min-new-tokens", flags.min_new_tokens, {.min = 0},
             "tokens before an answer may end");
  add_number(command, "--no-repeat-ngram", flags.no_repeat_ngram, {.min = 0, .max = 1000},
             "never the same N tokens in a row twice");
  add_number(command, "--repetition-penalty", flags.repetition_penalty, {.min = 0.01, .max = 100},
             "above 1: tokens that have occurred become less likely");
  add_texts(command, "--ban", flags.banned, "TEXT", "must not occur; may be given again");
  add_texts(command, "--require", flags.required, "TEXT",
            "must occur (with a beam); may be given again");
  add_text(command, "--prefix", flags.prefix, "TEXT", "how the answer begins");
  add_number(command, "--batch-tokens", flags.batch_tokens, {.min = 1},
             "rows of one run of the model, at most (default 1024)");
  add_number(command, "--kv-memory", flags.kv_memory_mb, {.min = 0.001, .max = 1e9},
             "megabytes for keys and values (default 1024)");
  add_number(command, "--workers", flags.workers, {.min = 1, .max = 1024},
             "batches that run at the same time, each on --threads threads");
  add_common_flags(command, flags, "threads of each worker; 0 means an equal share of all CPUs");
}

SearchOptions search_options(const SearchFlags& flags, const Model& model,
                             const SearchDefaults& defaults) {
  SearchOptions o = model.search_options();
  if (!model.has_setting("num_beams")) o.beam = defaults.beam;
  if (!model.has_setting("length_penalty")) o.length_penalty = defaults.length_penalty;
  if (flags.beam || flags.greedy) o.sample = false;
  if (flags.beam) o.beam = *flags.beam;
  if (flags.greedy) {
    if (flags.beam.value_or(1) != 1) {
      throw Error(ErrorCode::invalid_argument, "--greedy and --beam contradict each other",
                  "give one of them");
    }
    o.beam = 1;
  }
  // More answers than beams need more beams.
  if (flags.nbest) o.nbest = *flags.nbest;
  if (!flags.beam && !flags.greedy && !o.sample) o.beam = std::max(o.beam, o.nbest);
  if (flags.length_penalty) o.length_penalty = *flags.length_penalty;
  if (!flags.length_penalty_rule.empty()) {
    o.length_penalty_rule = rule_named(flags.length_penalty_rule);
  }
  if (flags.early_stopping) o.early_stopping = EarlyStopping::yes;
  if (flags.max_new_tokens) o.max_new_tokens = *flags.max_new_tokens;
  if (flags.min_new_tokens) o.min_new_tokens = *flags.min_new_tokens;
  if (flags.no_repeat_ngram) o.no_repeat_ngram = *flags.no_repeat_ngram;
  if (flags.repetition_penalty) o.repetition_penalty = *flags.repetition_penalty;
  o.banned.insert(o.banned.end(), flags.banned.begin(), flags.banned.end());
  o.required.insert(o.required.end(), flags.required.begin(), flags.required.end());
  o.seed = flags.seed;
  return o;
}

void check_flags(const SearchOptions& o) {
  const auto above = [](const std::string& flag, int64_t value, const std::string& other,
                        int64_t most, const std::string& hint) {
    throw Error(
        ErrorCode::invalid_argument,
        flag + " " + std::to_string(value) + " is above " + other + " " + std::to_string(most),
        hint);
  };
  if (!o.sample && o.nbest > o.beam) {
    above("--nbest", o.nbest, "--beam", o.beam, "each answer needs a beam of its own");
  }
  if (o.max_new_tokens > 0 && o.min_new_tokens > o.max_new_tokens) {
    above("--min-new-tokens", o.min_new_tokens, "--max-new-tokens", o.max_new_tokens,
          "lower the one, or raise the other");
  }
}

EngineOptions engine_options(const SearchFlags& flags) {
  EngineOptions options{.threads = flags.threads, .workers = flags.workers};
  options.scores = flags.scores || flags.json;  // who prints none need not pay for them
  if (flags.batch_tokens) options.batch_tokens = *flags.batch_tokens;
  if (flags.kv_memory_mb) {
    options.kv_memory_bytes = static_cast<uint64_t>(*flags.kv_memory_mb * kMegabyte);
  }
  return options;
}

Model load_model(const SearchFlags& flags, const std::string& verb) {
  return load_model(flags.model, "heed " + verb + " --model DIR");
}

std::string run_inputs(const SearchFlags& flags, const Model& model, const SearchOptions& search) {
  std::vector<Request> requests;
  for (std::vector<int32_t>& ids : read_inputs(flags.inputs, model.has_source())) {
    requests.push_back({.ids = std::move(ids),
                        .prefix = flags.prefix,
                        .search = search,
                        .stream = requests.size()});
  }
  Json sequences = Json::array(), scores = Json::array();
  std::string lines;
  ProgressLine progress;
  Engine engine(model, engine_options(flags));
  const size_t total = requests.size();
  engine.run(std::move(requests), [&](size_t i, Result&& result) {
    progress.show(std::to_string(i + 1) + " of " + std::to_string(total));
    Json ids = Json::array(), values = Json::array();
    for (const Answer& answer : result.answers) {
      if (flags.scores) lines += fixed(answer.score, 6) + "\t";
      for (size_t k = 0; k < answer.ids.size(); ++k) {
        lines += (k > 0 ? " " : "") + std::to_string(answer.ids[k]);
      }
      lines += "\n";
      ids.push_back(answer.ids), values.push_back(answer.score);
    }
    sequences.push_back(flags.nbest ? ids : ids[0]);
    scores.push_back(flags.nbest ? values : values[0]);
  });
  if (!flags.json) return lines;
  return Json{{"sequences", std::move(sequences)}, {"scores", std::move(scores)}}.dump() + "\n";
}

}  // namespace heed::cli
