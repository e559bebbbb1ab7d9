#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text/suggest.h"
#include "cli/flags.h"
#include "heed/error.h"
#include "heed/version.h"

namespace heed::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  heed translate --model DIR news.en > news.de\n"
    "  heed generate --model DIR --prompt 'Once upon a time' --temperature 0.8\n"
    "  echo 'A cat sleeps.' | heed embed --model DIR\n"
    "  heed train recipes/shakespeare-char.toml --out DIR\n"
    "  heed bench translate --preset transformer-base --beam 4\n"
    "  heed help translate                the flags of one command\n"
    "\n"
    "Results go to standard output, progress to standard error. Exit status: 0 success,\n"
    "2 invalid argument or input, 70 internal error.";

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "\nUsage: " + name;
    const bool has_commands = !app->get_subcommands({}).empty();
    if (has_commands) usage += app->get_parent() == nullptr ? " COMMAND" : " TOPIC";
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) usage += " " + make_option_usage(option);
    }
    return usage + " [FLAGS]\n";
  }
};

// The selected commands, from the root: heed, bench, ops.
std::vector<const CLI::App*> chosen_commands(const CLI::App& heed) {
  std::vector<const CLI::App*> path = {&heed};
  while (!path.back()->get_subcommands().empty()) {
    path.push_back(path.back()->get_subcommands().front());
  }
  return path;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent ? full_name(*parent) + " " : "") + command.get_name();
}

std::string see_help(const CLI::App& command) { return "run '" + full_name(command) + " --help'"; }

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Topics are named with their verb, verbs alone.
std::string kind_of_subcommand(const CLI::App& command) {
  return command.get_parent() ? full_name(command) + ": unknown topic" : "unknown command";
}

// "did you mean 'bench'?", or a pointer to --help when no name is similar.
std::string suggestion(const std::string& given, const std::vector<std::string>& names,
                       const CLI::App& command) {
  const auto name = nearest(given, names);
  return name ? "did you mean '" + *name + "'?" : see_help(command);
}

// Flags of one letter that other programs have.
std::optional<std::string> meant_by_letter(const std::string& flag,
                                           const std::vector<std::string>& names) {
  constexpr std::pair<char, const char*> kUsual[] = {
      {'b', "--beam"},           {'f', "--inputs"}, {'i', "--inputs"}, {'m', "--model"},
      {'n', "--max-new-tokens"}, {'n', "--nbest"},  {'o', "--out"},    {'p', "--prompt"},
      {'p', "--port"},           {'s', "--seed"},   {'t', "--threads"}};
  if (flag.size() != 2) return std::nullopt;
  for (const auto& [letter, name] : kUsual) {
    if (flag[1] == letter && std::ranges::find(names, name) != names.end()) return name;
  }
  return std::nullopt;
}

Error unknown_flag(const CLI::App& command, const std::string& flag, const CLI::App& last) {
  const std::string message = full_name(command) + ": unknown flag '" + flag + "'";
  const bool is_for_last = &command != &last && last.get_option_no_throw(flag) != nullptr;
  if (is_for_last) {  // heed --json bench ops
    return {ErrorCode::invalid_argument, message, "put it last: " + full_name(last) + " " + flag};
  }
  const std::vector<std::string> names = flag_names(command);
  if (const auto meant = meant_by_letter(flag, names)) {
    return {ErrorCode::invalid_argument, message, "did you mean '" + *meant + "'?"};
  }
  return {ErrorCode::invalid_argument, message, suggestion(flag, names, command)};
}

Error unknown_word(const CLI::App& command, const std::string& word) {
  const std::vector<std::string> names = subcommand_names(command);
  if (names.empty()) {
    return {ErrorCode::invalid_argument,
            full_name(command) + ": unexpected argument '" + word + "'", see_help(command)};
  }
  return {ErrorCode::invalid_argument, kind_of_subcommand(command) + " '" + word + "'",
          suggestion(word, names, command)};
}

void refuse_unknown_arguments(const std::vector<const CLI::App*>& commands) {
  for (const CLI::App* command : commands) {
    const std::vector<std::string> unknown = command->remaining();
    if (unknown.empty()) continue;
    const std::string& first = unknown.front();
    const bool is_flag = first.size() > 1 && first[0] == '-';
    if (is_flag) throw unknown_flag(*command, first.substr(0, first.find('=')), *commands.back());
    throw unknown_word(*command, first);
  }
}

// CLI11 says "--threads: 1 required N missing" or "json was given a disallowed flag override";
// only the name of the flag is kept.
Error wrong_value_count(const CLI::App& command, const CLI::ArgumentMismatch& mismatch) {
  std::string flag = mismatch.what();
  flag.erase(std::min(flag.find_first_of(": "), flag.size()));
  if (!flag.starts_with("-")) flag.insert(0, "--");
  const CLI::Option* option = command.get_option_no_throw(flag);
  if (option == nullptr) return {ErrorCode::invalid_argument, mismatch.what(), see_help(command)};
  const bool is_switch = option->get_items_expected_max() == 0;
  return {ErrorCode::invalid_argument, flag + (is_switch ? " takes no value" : " requires a value"),
          describe(*option)};
}

// CLI11 treats `--flag=` as `--flag` and would take the next argument as its value.
std::vector<std::string> split_empty_values(std::vector<std::string> arguments) {
  std::vector<std::string> result;
  for (std::string& argument : arguments) {
    const bool has_empty_value =
        argument.starts_with("--") && argument.find('=') + 1 == argument.size();
    if (has_empty_value) argument.pop_back();
    result.push_back(std::move(argument));
    if (has_empty_value) result.emplace_back();
  }
  return result;
}

CLI::App& new_command(CLI::App& parent, const std::string& name, const std::string& summary) {
  CLI::App* command = parent.add_subcommand(name, summary);
  command->group(parent.get_parent() == nullptr ? "Commands" : "Topics");
  command->get_help_ptr()->group("Flags");
  command->require_subcommand(0, 1);
  command->allow_extras();
  command->footer("");
  return *command;
}

}  // namespace

Command Command::add_topic(const std::string& name, const std::string& summary) const {
  return {*program_, new_command(*app_, name, summary)};
}

void Command::on_run(Action action) const { program_->actions_[app_] = std::move(action); }
void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::set_help(const std::string& flag, const std::string& help) const {
  app_->get_option(flag)->description(help);
}

bool Command::given(const std::string& flag) const { return app_->count(flag) > 0; }
std::string Command::name() const { return app_->get_name(); }
std::string Command::summary() const { return app_->get_description(); }

std::vector<Command> Command::subcommands() const {
  std::vector<Command> commands;
  for (CLI::App* app : app_->get_subcommands({})) commands.push_back({*program_, *app});
  return commands;
}

Program::Program()
    : heed_(std::make_unique<CLI::App>(
          "Heed: Transformers on CPUs. Training, inference and evaluation.", "heed")) {
  heed_->formatter(std::make_shared<HelpFormatter>());
  heed_->set_help_flag("-h,--help", "show this help");
  heed_->set_version_flag("-V,--version", std::string("heed ") + version(), "show the version");
  heed_->get_help_ptr()->group("Flags");
  heed_->get_version_ptr()->group("Flags");
  heed_->option_defaults()->group("Flags");
  heed_->require_subcommand(0, 1);
  heed_->allow_extras();  // collected, and refused by refuse_unknown_arguments()
  heed_->footer(kExamples);
}

Program::~Program() = default;

Command Program::add_verb(const std::string& name, const std::string& summary) {
  return {*this, new_command(*heed_, name, summary)};
}

Program::Request Program::parse(std::vector<std::string> arguments) {
  arguments = split_empty_values(std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects reversed order
  Request request = Request::run;
  try {
    heed_->parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    request = Request::help;
  } catch (const CLI::CallForVersion&) {
    request = Request::version;
  } catch (const CLI::ArgumentMismatch& mismatch) {
    throw wrong_value_count(*chosen_commands(*heed_).back(), mismatch);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::invalid_argument, error.what(),
                see_help(*chosen_commands(*heed_).back()));
  }
  refuse_unknown_arguments(chosen_commands(*heed_));
  return request;
}

void Program::run(std::vector<std::string> arguments, Output& out) {
  const bool no_arguments = arguments.empty();
  if (!no_arguments && arguments.front() == "help") {  // heed help translate
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  const Request request = parse(std::move(arguments));
  if (request == Request::version) return out.write(heed_->version() + "\n");
  if (request == Request::help || no_arguments) return out.write(heed_->help());

  const CLI::App& command = *chosen_commands(*heed_).back();
  const auto action = actions_.find(&command);
  if (action == actions_.end()) {
    throw Error(ErrorCode::invalid_argument, full_name(command) + " requires a topic",
                "one of: " + CLI::detail::join(subcommand_names(command), ", "));
  }
  action->second(out);
}

}  // namespace heed::cli
