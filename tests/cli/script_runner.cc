// Runs one *.test file; README.md in this folder describes the format.
//
//   cli_script_runner FILE.test PATH/TO/heed
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Result {
  std::string command;
  int exit = 0;
  std::string out, err;
};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A folder of our own for what the commands write, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = fs::temp_directory_path() / "heed_cli_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result run(const std::string& command, const fs::path& scratch) {
  const fs::path out = scratch / "stdout", err = scratch / "stderr";
  const std::string line = "cd '" + scratch.string() + "' && { " + command + "\n} >'" +
                           out.string() + "' 2>'" + err.string() + "'";
  const int status = std::system(line.c_str());
  const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {command, exit, read_file(out), read_file(err)};
}

// "stdout has a b" -> "stdout", leaving "has a b".
std::string take_word(std::string& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string word = text.substr(0, end);
  text.erase(0, std::min(text.find_first_not_of(' ', end), text.size()));
  return word;
}

bool text_holds(const std::string& text, std::string check) {
  const std::string kind = take_word(check);
  if (kind == "empty") return text.empty();
  if (kind == "lines") return std::count(text.begin(), text.end(), '\n') == std::stol(check);
  if (kind == "is") return text == check + "\n";
  if (kind == "has") return text.find(check) != std::string::npos;
  if (kind == "lacks") return text.find(check) == std::string::npos;
  throw std::runtime_error("unknown check '" + kind + "'");
}

bool json_holds(const std::string& text, std::string check) {
  const nlohmann::json::json_pointer pointer(take_word(check));
  const auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.contains(pointer)) return false;
  return check.empty() || document.at(pointer) == nlohmann::json::parse(check);
}

bool holds(const Result& result, std::string check) {
  const std::string subject = take_word(check);
  if (subject == "exit") return result.exit == std::stoi(check);
  if (subject == "stdout") return text_holds(result.out, check);
  if (subject == "stderr") return text_holds(result.err, check);
  if (subject == "json") return json_holds(result.out, check);
  throw std::runtime_error("unknown check '" + subject + "'");
}

class Script {
 public:
  Script(fs::path path, fs::path scratch) : path_(std::move(path)), scratch_(std::move(scratch)) {}

  // The number of failed checks.
  int run_all() {
    std::ifstream file(path_);
    if (!file) throw std::runtime_error("cannot open " + path_.string());
    for (std::string line; std::getline(file, line);) {
      ++line_number_;
      if (line.empty() || line[0] == '#') continue;
      if (line.starts_with("run ")) {
        finish_command();
        start_command(line.substr(4));
      } else {
        check(line);
      }
    }
    finish_command();
    if (commands_ == 0) throw std::runtime_error(path_.string() + " runs no command");
    return failures_;
  }

 private:
  void start_command(const std::string& command) {
    result_ = run(command, scratch_);
    command_line_ = line_number_;
    exit_checked_ = false;
    ++commands_;
  }

  void check(const std::string& line) {
    if (commands_ == 0) throw std::runtime_error("a check stands before the first run line");
    if (line.starts_with("exit ")) exit_checked_ = true;
    if (!holds(result_, line)) fail(line_number_, line);
  }

  void finish_command() {
    const bool unexpected_exit = commands_ > 0 && !exit_checked_ && result_.exit != 0;
    if (unexpected_exit) fail(command_line_, "exit 0");
  }

  void fail(int line_number, const std::string& check) {
    ++failures_;
    std::cerr << path_.string() << ':' << line_number << ": does not hold: " << check
              << "\n  command: " << result_.command << "\n  exit: " << result_.exit
              << "\n  stdout: " << result_.out << "\n  stderr: " << result_.err << "\n";
  }

  fs::path path_, scratch_;
  Result result_;
  int line_number_ = 0, command_line_ = 0, commands_ = 0, failures_ = 0;
  bool exit_checked_ = true;
};

// `heed` in a script is the command under test, whatever else is installed.
void put_first_on_path(const fs::path& folder) {
  const char* old_path = std::getenv("PATH");
  const std::string path = folder.string() + (old_path ? std::string(":") + old_path : "");
  setenv("PATH", path.c_str(), /*overwrite=*/1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: cli_script_runner FILE.test PATH/TO/heed\n";
    return 2;
  }
  try {
    put_first_on_path(fs::absolute(argv[2]).parent_path());
    const ScratchFolder scratch;
    return Script(fs::absolute(argv[1]), scratch.path()).run_all() == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
