// The command line as a tree of commands: heed, its verbs (bench), and a verb's topics (bench ops).
//
//   Program program;
//   CLI::App& greet = program.add_command(program.heed(), "greet", "Say hello");
//   program.on_run(greet, [](Output& out) { out.write("hello\n"); });
//   program.run({"greet"}, out);
//
// CLI11 reads the arguments; the words for what is wrong with them are ours, because each must come
// as one Error with a hint.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/output.h"

namespace heed::cli {

class Program {
 public:
  // Runs a command whose flags have been read; results go to `out`.
  using Action = std::function<void(Output& out)>;

  Program();

  CLI::App& heed() { return heed_; }
  CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& summary);
  void on_run(const CLI::App& command, Action action) { actions_[&command] = std::move(action); }

  // Does what `arguments` (without the program's name) ask for. Throws Error; invalid_argument when
  // the arguments make no sense.
  void run(std::vector<std::string> arguments, Output& out);

 private:
  enum class Wish { run, help, version };
  Wish parse(std::vector<std::string> arguments);

  CLI::App heed_;
  std::map<const CLI::App*, Action> actions_;
};

}  // namespace heed::cli
