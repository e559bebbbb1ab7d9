#include "cli/search_flags.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "cli/line_verb.h"
#include "cli/output.h"
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
      path + " must be a JSON object with \"" + key + "\", a list of lists of integers",
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

// ---- One flag for each option of a list --------------------------------------------------------

template <class Field>
inline constexpr bool kIsInteger = std::is_integral_v<Field> && !std::is_same_v<Field, bool>;

// A list's range as one of the field's type.
template <class Number, class Field>
Range<Number> range_of(const OptionInfo& info, const Field&) {
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<Field>::lowest());
  constexpr auto kMost = static_cast<double>(std::numeric_limits<Field>::max());
  Range<Number> range{.min = static_cast<Number>(std::numeric_limits<Field>::lowest()),
                      .max = static_cast<Number>(std::numeric_limits<Field>::max())};
  if (info.min > kLeast) range.min = static_cast<Number>(info.min);
  if (info.max < kMost) range.max = static_cast<Number>(info.max);
  return range;
}

// "17=-2.5"
std::pair<int32_t, double> read_bias(const Command& command, const std::string& flag,
                                     const std::string& text, Range<double> range) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw Error(ErrorCode::invalid_argument, flag + " must be ID=VALUE, got '" + text + "'",
                flag_help(command, flag));
  }
  const auto id = read_number<int64_t>(command, flag, text.substr(0, equals),
                                       {.min = 0, .max = std::numeric_limits<int32_t>::max()});
  return {static_cast<int32_t>(id),
          read_number<double>(command, flag, text.substr(equals + 1), range)};
}

// The names of options that were given go into `given`.
class OptionFlags {
 public:
  OptionFlags(Command command, std::vector<std::string>& given)
      : command_(command), given_(given) {}

  template <class Field>
  void operator()(const OptionInfo& info, Field& field) const {
    const std::string flag = flag_of(info);
    if (!flag.empty()) add(flag, info, field);
  }

 private:
  template <class Field>
  void add(const std::string& flag, const OptionInfo& info, Field& field) const {
    const Command command = command_;
    std::vector<std::string>& given = given_;
    const std::string name = info.name;
    const auto value = [&](const char* value_name, auto read) {
      add_value(command, flag, value_name, info.help,
                [read, &field, &given, name](const std::string& text) {
                  field = read(text), given.push_back(name);
                });
    };
    if constexpr (std::is_same_v<Field, bool>) {
      add_on_switch(flag, info, field, true);
    } else if constexpr (std::is_enum_v<Field>) {
      if (const auto yes = from_name<Field>("yes")) return add_on_switch(flag, info, field, *yes);
      value("NAME", [flag](const std::string& text) {
        if (const auto choice = from_name<Field>(text)) return *choice;
        throw Error(ErrorCode::invalid_argument,
                    flag + " must be " + choices_of<Field>() + ", got '" + text + "'",
                    "give one of these names");
      });
    } else if constexpr (std::is_floating_point_v<Field>) {
      value("N", [command, flag, range = range_of<double>(info, field)](const std::string& text) {
        return read_number<double>(command, flag, text, range);
      });
    } else if constexpr (kIsInteger<Field>) {
      using Number = std::conditional_t<std::is_unsigned_v<Field>, uint64_t, int64_t>;
      value("N", [command, flag, range = range_of<Number>(info, field)](const std::string& text) {
        return static_cast<Field>(read_number<Number>(command, flag, text, range));
      });
    } else if constexpr (std::is_same_v<Field, LogitBias>) {
      add_list(flag, "ID=VALUE", info,
               [command, &field, flag,
                range = range_of<double>(info, double{})](const std::string& text) {
                 const auto [id, bias] = read_bias(command, flag, text, range);
                 field[id] = bias;
               });
    } else {
      static_assert(std::is_same_v<Field, std::vector<std::string>>);
      add_list(flag, "TEXT", info, [&field](const std::string& text) { field.push_back(text); });
    }
  }

  template <class Field>
  void add_on_switch(const std::string& flag, const OptionInfo& info, Field& field,
                     Field on) const {
    add_switch(
        command_, flag,
        [&field, &given = given_, on, name = std::string(info.name)] {
          field = on, given.push_back(name);
        },
        info.help);
  }

  template <class Read>
  void add_list(const std::string& flag, const char* value_name, const OptionInfo& info,
                Read read) const {
    add_values(command_, flag, value_name, info.help,
               [read, &given = given_,
                name = std::string(info.name)](const std::vector<std::string>& texts) {
                 for (const std::string& text : texts) read(text);
                 given.push_back(name);
               });
  }

  Command command_;
  std::vector<std::string>& given_;
};

}  // namespace

void add_search_flags(Command command, SearchFlags& flags) {
  add_text(command, "--model", flags.model, "DIR", "model folder");
  add_text(
      command, "--inputs", flags.inputs, "FILE",
      "JSON with raw ids instead of text: \"sources\", or \"sequences\" of decoder-only models");
  for_each_option(flags.search.values, OptionFlags(command, flags.search.names));
  add_switch(command, "--greedy", flags.search.greedy,
             "argmax at every step: neither a beam nor sampling");
  add_switch(command, "--scores", flags.scores, "print the score before each text");
  add_text(command, "--prefix", flags.prefix, "TEXT", "beginning of the answer");
  add_common_flags(command, flags, "threads of each worker; 0 means an equal share of all CPUs",
                   HasSeed::no);
  const auto read_seed = [command, &flags](const std::string& text) {
    flags.search.values.seed = read_number<uint64_t>(command, "--seed", text, {});
    flags.search.set("seed");
  };
  add_value(command, "--seed", "N",
            "random seed of sampling (default: a random one, printed on standard error)",
            read_seed);
  for_each_option(flags.engine, [&](const OptionInfo& info, auto& field) {
    const std::string flag = flag_of(info);
    if (flag.empty()) return;
    if (flag == "--kv-memory") {  // in megabytes, as the other flags for memory
      add_value(
          command, flag, "MB",
          std::string(info.help) + ", in megabytes (default " +
              std::to_string(flags.engine.kv_memory_bytes >> 20) + ")",
          [command, &flags, flag](const std::string& text) {
            flags.engine.kv_memory_bytes = static_cast<uint64_t>(
                read_number<double>(command, flag, text, {.min = 0.001, .max = 1e9}) * kMegabyte);
          });
      return;
    }
    if constexpr (kIsInteger<std::remove_reference_t<decltype(field)>>) {
      using Field = std::remove_reference_t<decltype(field)>;
      add_value(
          command, flag, "N", std::string(info.help) + " (default " + std::to_string(field) + ")",
          [command, flag, &field, range = range_of<int64_t>(info, field)](const std::string& text) {
            field = static_cast<Field>(read_number<int64_t>(command, flag, text, range));
          });
    }
  });
}

void add_truncate_flag(Command command, SearchFlags& flags) {
  const std::string flag = "--truncate";
  add_value(command, flag, "SIDE",
            "cut inputs beyond the context length: left keeps their end, right their beginning "
            "(default no: an error)",
            [&flags, flag](const std::string& text) {
              const auto choice = from_name<Truncation>(text);
              if (!choice) {
                throw Error(ErrorCode::invalid_argument,
                            flag + " must be " + choices_of<Truncation>() + ", got '" + text + "'",
                            "left is usual for prompts: their end is what is continued");
              }
              flags.truncate = *choice;
            });
}

SearchOptions search_options(const SearchFlags& flags, const SearchOptions& defaults) {
  SearchOptions options = apply(defaults, flags.search);
  check(options);
  if (is_random(options) && !flags.search.has("seed")) {
    std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(options.seed));
  }
  return options;
}

EngineOptions engine_options(const SearchFlags& flags) {
  EngineOptions options = flags.engine;
  options.threads = flags.threads;
  options.scores = flags.scores || flags.json;  // not computed when they are not printed
  return options;
}

Model load_model(const SearchFlags& flags, const std::string& verb) {
  // The caller says first if this is the wrong kind of model.
  return load_model(flags.model, "heed " + verb + " --model DIR", /*takes_text=*/false);
}

void warn_of_truncation(const Result& result, const std::string& input) {
  print_message("warning", input + " has " + std::to_string(result.input_tokens) +
                               " tokens, more than the context length, and was truncated");
}

std::string run_inputs(const SearchFlags& flags, const Model& model, const SearchOptions& search) {
  std::vector<Request> requests;
  for (std::vector<int32_t>& ids : read_inputs(flags.inputs, model.has_source())) {
    requests.push_back({.ids = std::move(ids),
                        .prefix = flags.prefix,
                        .search = search,
                        .stream = requests.size(),
                        .truncate = flags.truncate});
  }
  Json sequences = Json::array(), scores = Json::array(), truncated = Json::array();
  std::string lines;
  ProgressLine progress;
  Engine engine(model, engine_options(flags));
  const size_t total = requests.size();
  engine.run(std::move(requests), [&](size_t i, Result&& result) {
    progress.show(std::to_string(i + 1) + " of " + std::to_string(total));
    if (result.truncated) warn_of_truncation(result, "input " + std::to_string(i + 1));
    truncated.push_back(result.truncated);
    Json ids = Json::array(), values = Json::array();
    for (const Answer& answer : result.answers) {
      if (flags.scores) lines += fixed(answer.score, 6) + "\t";
      for (size_t k = 0; k < answer.ids.size(); ++k) {
        lines += (k > 0 ? " " : "") + std::to_string(answer.ids[k]);
      }
      lines += "\n";
      ids.push_back(answer.ids), values.push_back(answer.score);
    }
    sequences.push_back(flags.search.has("nbest") ? ids : ids[0]);
    scores.push_back(flags.search.has("nbest") ? values : values[0]);
  });
  if (!flags.json) return lines;
  Json json{{"sequences", std::move(sequences)}, {"scores", std::move(scores)}};
  if (is_random(search)) json["seed"] = search.seed;
  if (flags.truncate != Truncation::no) json["truncated"] = std::move(truncated);
  return json.dump() + "\n";
}

}  // namespace heed::cli
