// What a request is refused with: a status, and words for whoever sent it.
//
//   throw HttpError::bad_field("temperature", "temperature: expected at most 2, found 3");
//
// Which form the words take (OpenAI's, LibreTranslate's) is the route's business: see routes.h.
#pragma once

#include <stdexcept>
#include <string>

#include "heed/error.h"

namespace heed::serve {

class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& message, std::string code = {}, std::string field = {})
      : std::runtime_error(message),
        status_(status),
        code_(std::move(code)),
        field_(std::move(field)) {}

  static HttpError bad_field(const std::string& field, const std::string& message) {
    return {400, message, "invalid_value", field};
  }
  // Try again after so many seconds.
  static HttpError later(int status, const std::string& message, int seconds) {
    HttpError error(status, message, status == 429 ? "too_many_requests" : "unavailable");
    error.retry_seconds_ = seconds;
    return error;
  }
  // What the library threw, as the sender is told it: our own mistakes without their details.
  static HttpError from(const Error& error);

  int status() const { return status_; }
  const std::string& code() const { return code_; }
  const std::string& field() const { return field_; }
  int retry_seconds() const { return retry_seconds_; }  // 0: says nothing

 private:
  int status_;
  std::string code_, field_;
  int retry_seconds_ = 0;
};

// Nobody is left to answer: the sender has hung up. nginx's number for it.
constexpr int kClientGone = 499;

}  // namespace heed::serve
