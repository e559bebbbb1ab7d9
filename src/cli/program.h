// The command line as a tree of commands: heed, its verbs (bench), and a verb's topics (bench ops).
//
//   Program program;
//   const Command greet = program.add_verb("greet", "Say hello");
//   greet.on_run([](Output& out) { out.write("hello\n"); });
//   program.run({"greet"}, out);
//
// CLI11 parses the arguments. Its header takes seconds to compile, so only program.cc and flags.cc
// include it. Its error texts are replaced: each error is one Error with a hint.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/output.h"

namespace CLI {
class App;
}

namespace heed::cli {

class Program;

// A reference to one command of a Program; copies refer to the same command.
class Command {
 public:
  // Runs a command after its flags have been parsed; results go to `out`.
  using Action = std::function<void(Output& out)>;

  Command add_topic(const std::string& name, const std::string& summary) const;
  void on_run(Action action) const;
  void footer(const std::string& text) const;  // the help's last paragraphs
  void set_help(const std::string& flag, const std::string& help) const;
  bool given(const std::string& flag) const;  // on the command line; valid from Program::run on

  std::string name() const;
  std::string summary() const;
  std::vector<Command> subcommands() const;
  CLI::App& app() const { return *app_; }

 private:
  friend class Program;
  Command(Program& program, CLI::App& app) : program_(&program), app_(&app) {}

  Program* program_;
  CLI::App* app_;
};

class Program {
 public:
  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Command heed() { return {*this, *heed_}; }
  Command add_verb(const std::string& name, const std::string& summary);

  // Runs the command that `arguments` (without the program's name) select. Throws Error;
  // invalid_argument when the arguments are wrong.
  void run(std::vector<std::string> arguments, Output& out);

 private:
  friend class Command;
  enum class Request { run, help, version };
  Request parse(std::vector<std::string> arguments);

  std::unique_ptr<CLI::App> heed_;
  std::map<const CLI::App*, Command::Action> actions_;
};

}  // namespace heed::cli
