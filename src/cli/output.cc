#include "cli/output.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "heed/error.h"

namespace heed::cli {
namespace {

[[noreturn]] void throw_write_error(int error) {
  if (error == EPIPE) throw ReaderGone();
  throw Error(ErrorCode::invalid_argument,
              "cannot write the results: " + std::generic_category().message(error),
              "check the space and the permissions where standard output goes");
}

}  // namespace

void Output::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) throw_write_error(errno);
}

void Output::flush() {
  if (std::fflush(file_) != 0) throw_write_error(errno);
}

}  // namespace heed::cli
