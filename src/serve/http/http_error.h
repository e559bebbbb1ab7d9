// An HTTP error reply: status, message, code and field.
//
//   throw HttpError::bad_field("temperature", "temperature must be at most 2, got 3");
//
// The JSON format (OpenAI's or LibreTranslate's) depends on the route: see service.h.
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
  // With a Retry-After header.
  static HttpError later(int status, const std::string& message, int seconds) {
    HttpError error(status, message, status == 429 ? "too_many_requests" : "unavailable");
    error.retry_seconds_ = seconds;
    return error;
  }
  // A library error for the client; internal errors without details.
  static HttpError from(const Error& error);

  int status() const { return status_; }
  const std::string& code() const { return code_; }
  const std::string& field() const { return field_; }
  int retry_seconds() const { return retry_seconds_; }  // 0: no Retry-After

 private:
  int status_;
  std::string code_, field_;
  int retry_seconds_ = 0;
};

// The client has disconnected; nginx's status code for it.
constexpr int kClientGone = 499;

}  // namespace heed::serve
