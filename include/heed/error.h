// Errors: what the library throws, and nothing else.
//
//   try { heed::Model::load(dir); }
//   catch (const heed::Error& e) { if (e.code() == heed::ErrorCode::not_found) … }
//
// The library never prints, aborts or exits. An Error means that the operation did not happen;
// what() says what was expected, what was found, where, and what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace heed {

enum class ErrorCode {
  invalid_argument,  // the caller's mistake: a value, a flag, a shape
  not_found,         // a file, a tensor, a name
  corrupt_file,      // a file whose content contradicts itself
  unsupported,       // understood, but not something Heed does
  out_of_memory,     // a planned limit or the machine's memory was exceeded
  cancelled,         // the caller asked to stop
  internal,          // a bug in Heed
};

// "invalid_argument" and so on: the enumerator's own name.
const char* name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  // `hint` says what to do about it, as one line; empty when there is nothing to add.
  Error(ErrorCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  ErrorCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorCode code_;
  std::string hint_;
};

}  // namespace heed
