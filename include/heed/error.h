// The only exception type that the library throws.
//
//   try { heed::Model::load(dir); }
//   catch (const heed::Error& e) { if (e.code() == heed::ErrorCode::not_found) … }
//
// The library never prints, aborts or exits. After an Error the operation has had no effect; what()
// says what was expected, what was found, and where.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace heed {

enum class ErrorCode {
  invalid_argument,  // a value, a flag or a shape that the caller passed
  not_found,         // a file, a tensor, a name
  corrupt_file,      // a file with invalid content
  unsupported,       // valid, but not implemented
  out_of_memory,     // a planned limit or the machine's memory was exceeded
  cancelled,         // by the caller
  internal,          // a bug in Heed
};

// The enumerator's name: "invalid_argument" and so on.
const char* name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  // `hint`: one line on how to fix it, or empty.
  Error(ErrorCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  ErrorCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorCode code_;
  std::string hint_;
};

}  // namespace heed
