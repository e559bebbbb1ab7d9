#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>
#include <type_traits>

#include "cli/program.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

constexpr int kMaxThreads = 1024;  // more is a typing error

template <class T>
std::string to_text(T value) {
  char digits[64];  // the shortest form that round-trips
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

template <class T>
std::string expectation(Range<T> range) {
  const bool has_min = range.min != std::numeric_limits<T>::lowest() || std::is_unsigned_v<T>;
  const bool has_max = range.max != std::numeric_limits<T>::max() || std::is_integral_v<T>;
  std::string text = std::is_integral_v<T> ? "an integer" : "a number";
  if (has_min && has_max) {
    return text + " between " + to_text(range.min) + " and " + to_text(range.max);
  }
  if (has_min) return text + " of at least " + to_text(range.min);
  if (has_max) return text + " of at most " + to_text(range.max);
  return text;
}

// Parses all of `text` as decimal. The comparison is written so that NaN is out of range.
template <class T>
bool parse(const std::string& text, Range<T> range, T& value) {
  T parsed{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, parsed);
  const bool in_range = parsed >= range.min && parsed <= range.max;
  if (result.ec != std::errc() || result.ptr != end || !in_range) return false;
  value = parsed;
  return true;
}

}  // namespace

void add_value(Command command, const std::string& flag, const std::string& value_name,
               const std::string& help, std::function<void(const std::string& text)> read) {
  // Not CLI11's conversion, which parses "010" as octal and "0x10" as hexadecimal.
  const auto read_last = [read = std::move(read)](const CLI::results_t& results) {
    read(results.back());
    return true;
  };
  command.app()
      .add_option(flag, read_last, help)
      ->type_name(value_name)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

template <class T>
T read_number(const Command& command, const std::string& flag, const std::string& text,
              Range<T> range) {
  T value{};
  if (parse(text, range, value)) return value;
  throw Error(ErrorCode::invalid_argument,
              flag + " must be " + expectation(range) + ", got '" + text + "'",
              describe(*command.app().get_option(flag)));
}
template int64_t read_number(const Command&, const std::string&, const std::string&,
                             Range<int64_t>);
template uint64_t read_number(const Command&, const std::string&, const std::string&,
                              Range<uint64_t>);
template double read_number(const Command&, const std::string&, const std::string&, Range<double>);

namespace {

template <class T>
void add_checked_number(Command command, const std::string& flag, T& value, Range<T> range,
                        const std::string& help) {
  add_value(command, flag, "N", help + " (default " + to_text(value) + ")",
            [command, flag, &value, range](const std::string& text) {
              value = read_number(command, flag, text, range);
            });
}

}  // namespace

void add_number(Command command, const std::string& flag, int& value, Range<int> range,
                const std::string& help) {
  add_checked_number(command, flag, value, range, help);
}

void add_number(Command command, const std::string& flag, uint64_t& value, Range<uint64_t> range,
                const std::string& help) {
  add_checked_number(command, flag, value, range, help);
}

void add_number(Command command, const std::string& flag, double& value, Range<double> range,
                const std::string& help) {
  add_checked_number(command, flag, value, range, help);
}

void add_number(Command command, const std::string& flag, std::optional<double>& value,
                Range<double> range, const std::string& help) {
  add_value(command, flag, "N", help, [command, flag, &value, range](const std::string& text) {
    value = read_number(command, flag, text, range);
  });
}

void add_number(Command command, const std::string& flag, std::optional<int>& value,
                Range<int> range, const std::string& help) {
  add_value(command, flag, "N", help, [command, flag, &value, range](const std::string& text) {
    value = read_number(command, flag, text, range);
  });
}

void add_text(Command command, const std::string& flag, std::string& value,
              const std::string& value_name, const std::string& help) {
  const std::string shown_default = value.empty() ? "" : " (default " + value + ")";
  add_value(command, flag, value_name, help + shown_default,
            [&value](const std::string& text) { value = text; });
}

void add_values(Command command, const std::string& flag, const std::string& value_name,
                const std::string& help,
                std::function<void(const std::vector<std::string>& texts)> read) {
  const auto read_all = [read = std::move(read)](const CLI::results_t& results) {
    read(results);
    return true;
  };
  // One value a flag: in "--stop a b", b is an argument.
  command.app()
      .add_option(flag, read_all, help)
      ->type_name(value_name)
      ->allow_extra_args(false)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_switch(Command command, const std::string& flag, std::function<void()> on,
                const std::string& help) {
  command.app().add_flag_callback(flag, std::move(on), help)->disable_flag_override();
}

std::string flag_help(const Command& command, const std::string& flag) {
  return describe(*command.app().get_option(flag));
}

void add_texts(Command command, const std::string& flag, std::vector<std::string>& values,
               const std::string& value_name, const std::string& help) {
  // One value per flag: in "--ref a b", b is a positional argument.
  command.app()
      .add_option(flag, values, help)
      ->type_name(value_name)
      ->allow_extra_args(false)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_files(Command command, const std::string& flag, std::vector<std::string>& values,
               const std::string& help) {
  command.app()
      .add_option(flag, values, help)
      ->type_name("FILES")
      ->expected(1, -1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_argument(Command command, const std::string& name, std::string& value,
                  const std::string& help) {
  const std::string shown_default = value.empty() ? "" : " (default " + value + ")";
  command.app().add_option(name, value, help + shown_default)->type_name("");
}

void add_arguments(Command command, const std::string& name, std::vector<std::string>& values,
                   const std::string& help) {
  command.app().add_option(name, values, help)->type_name("")->expected(0, -1);
}

void add_switch(Command command, const std::string& flag, bool& value, const std::string& help) {
  command.app().add_flag(flag, value, help)->disable_flag_override();
}

void add_common_flags(Command command, CommonFlags& flags, const std::string& threads_help,
                      HasSeed has_seed) {
  add_number(command, "--threads", flags.threads, {.min = 0, .max = kMaxThreads}, threads_help);
  if (has_seed == HasSeed::yes) add_number(command, "--seed", flags.seed, {}, "random seed");
  add_switch(command, "--json", flags.json, "print the result as JSON");
}

std::string describe(const CLI::Option& option) {
  const std::string value_name = option.get_type_name();  // empty for a switch
  return option.get_name() + (value_name.empty() ? "" : " " + value_name) + ": " +
         option.get_description();
}

}  // namespace heed::cli
