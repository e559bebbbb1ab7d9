// The command `heed`: arguments in, exit status out. The only place that catches everything.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

// The contract with scripts; 70 is EX_SOFTWARE of sysexits.h.
constexpr int kFine = 0, kUserError = 2, kOurBug = 70;

// Scripts count on one line each, so a line break inside a message becomes a space.
void print_line(const char* label, std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fprintf(stderr, "%s: %s\n", label, text.c_str());
}

int report_user_error(const Error& error) {
  print_line("error", error.what());
  print_line("hint", error.hint().empty() ? "run 'heed --help'" : error.hint());
  return kUserError;
}

int report_bug(std::string_view what) {
  constexpr std::string_view kPrefix = "internal error";  // HEED_CHECK's messages have it already
  const bool has_prefix = what.starts_with(kPrefix);
  print_line("error", (has_prefix ? "" : std::string(kPrefix) + ": ") + std::string(what));
  print_line("hint", "this is a bug in Heed: please report it with the command that you ran");
  return kOurBug;
}

int run(int argc, char** argv) {
  try {
    Output out(stdout);
    Program program;
    add_verbs(program);
    program.run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), out);
    out.flush();
    return kFine;
  } catch (const ReaderGone&) {
    return kFine;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) return report_bug(error.what());
    return report_user_error(error);
  } catch (const std::exception& error) {
    return report_bug(error.what());
  } catch (...) {
    return report_bug("unknown exception");
  }
}

}  // namespace
}  // namespace heed::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `heed … | head` ends in ReaderGone rather than by a signal
  return heed::cli::run(argc, argv);
}
