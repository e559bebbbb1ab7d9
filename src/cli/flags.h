// The flags of a verb: one call each, with a range check and the default shown in the help.
//
//   add_text(ops, "--filter", options->filter, "TEXT", "only rows whose name contains TEXT");
//   add_number(ops, "--seconds", options->seconds, {.min = 0.001}, "time for each row");
//
// The variable of a flag must live until the command has run; its initial value is the default. If a
// flag is repeated, the last value counts. An invalid value throws an Error.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"

namespace CLI {
class Option;
}

namespace heed::cli {

template <class T>
struct Range {  // both ends included
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

void add_number(Command command, const std::string& flag, int& value, Range<int> range,
                const std::string& help);
void add_number(Command command, const std::string& flag, uint64_t& value, Range<uint64_t> range,
                const std::string& help);
void add_number(Command command, const std::string& flag, double& value, Range<double> range,
                const std::string& help);
// Without a default value.
void add_number(Command command, const std::string& flag, std::optional<double>& value,
                Range<double> range, const std::string& help);
void add_number(Command command, const std::string& flag, std::optional<int>& value,
                Range<int> range, const std::string& help);
void add_text(Command command, const std::string& flag, std::string& value,
              const std::string& value_name, const std::string& help);
// Calls read(text) with the value of the flag.
void add_value(Command command, const std::string& flag, const std::string& value_name,
               const std::string& help, std::function<void(const std::string& text)> read);
// A flag that may be repeated: calls read(texts) with all values in order.
void add_values(Command command, const std::string& flag, const std::string& value_name,
                const std::string& help,
                std::function<void(const std::vector<std::string>& texts)> read);
// The number in `text`, within the range; T is int64_t, uint64_t or double.
template <class T>
T read_number(const Command& command, const std::string& flag, const std::string& text,
              Range<T> range);
// May be repeated; `values` are in order.
void add_texts(Command command, const std::string& flag, std::vector<std::string>& values,
               const std::string& value_name, const std::string& help);
// Takes all values up to the next flag, so only for verbs without arguments; may be repeated.
void add_files(Command command, const std::string& flag, std::vector<std::string>& values,
               const std::string& help);
// An argument without a flag, FILE in `heed eval bleu FILE`; at most one.
void add_argument(Command command, const std::string& name, std::string& value,
                  const std::string& help);
// Any number of them: FILE… in `heed tokenizer encode FILE…`.
void add_arguments(Command command, const std::string& name, std::vector<std::string>& values,
                   const std::string& help);
void add_switch(Command command, const std::string& flag, bool& value, const std::string& help);
// Calls on() when the flag is given.
void add_switch(Command command, const std::string& flag, std::function<void()> on,
                const std::string& help);

// The flags that all verbs have.
struct CommonFlags {
  int threads = 0;  // 0: all CPUs of this process
  uint64_t seed = 0;
  bool json = false;
};
enum class HasSeed { no, yes };  // no: the verb has its own --seed
void add_common_flags(Command command, CommonFlags& flags,
                      const std::string& threads_help = "number of threads; 0: all CPUs",
                      HasSeed has_seed = HasSeed::yes);

// "--threads N: number of threads …", for hints.
std::string describe(const CLI::Option& option);
std::string flag_help(const Command& command, const std::string& flag);

}  // namespace heed::cli
