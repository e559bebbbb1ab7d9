// The command `heed`: arguments in, exit status out. The only place that catches everything.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/process_memory.h"
#include "base/text/number_text.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

// The contract with scripts; 70 is EX_SOFTWARE of sysexits.h.
constexpr int kSuccess = 0, kUserError = 2, kInternalError = 70;

// "heed bench ops": the command without flags and arguments.
std::string command_of(int argc, char** argv) {
  std::string command = "heed";
  for (int i = 1; i < std::min(argc, 3); ++i) {
    const std::string_view word = argv[i];
    const bool is_name =
        !word.empty() && std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
    if (!is_name) break;
    command += " " + std::string(word);
  }
  return command;
}

// Hints for library errors that have none.
std::string usual_hint(ErrorCode code, const std::string& command) {
  switch (code) {
    case ErrorCode::not_found:
      return "check the path and its permissions";
    case ErrorCode::corrupt_file:
      return "the file may be incomplete or of another format: download or write it again";
    case ErrorCode::out_of_memory:
      return "reduce the batch or the model size, or free memory";
    default:
      return "see '" + command + " --help'";
  }
}

int report_user_error(const Error& error, const std::string& command) {
  print_message("error", error.what());
  print_message("hint", error.hint().empty() ? usual_hint(error.code(), command) : error.hint());
  return kUserError;
}

int report_bug(std::string_view what) {
  constexpr std::string_view kPrefix = "internal error";  // HEED_CHECK's messages have it already
  const bool has_prefix = what.starts_with(kPrefix);
  print_message("error", (has_prefix ? "" : std::string(kPrefix) + ": ") + std::string(what));
  print_message("hint", "this is a bug in Heed: please report it with the full command");
  return kInternalError;
}

int run(int argc, char** argv) {
  try {
    Output out(stdout);
    Program program;
    add_verbs(program);
    program.run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), out);
    out.flush();
    return kSuccess;
  } catch (const ReaderGone&) {
    return kSuccess;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) return report_bug(error.what());
    return report_user_error(error, command_of(argc, argv));
  } catch (const std::bad_alloc&) {
    return report_user_error(
        Error(ErrorCode::out_of_memory, "out of memory: this process has " +
                                            megabytes(current_rss_bytes()) + " and may have " +
                                            megabytes(memory_limit_bytes())),
        command_of(argc, argv));
  } catch (const std::system_error& error) {
    // Thrown by std::thread at the system's thread limit.
    if (error.code() != std::errc::resource_unavailable_try_again) return report_bug(error.what());
    return report_user_error(
        Error(ErrorCode::out_of_memory, std::string("cannot start a thread: ") + error.what(),
              "use fewer threads (--threads), or stop other programs"),
        command_of(argc, argv));
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
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error, as on a full disk
  return heed::cli::run(argc, argv);
}
