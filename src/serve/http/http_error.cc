#include "serve/http/http_error.h"

namespace heed::serve {

HttpError HttpError::from(const Error& error) {
  const std::string message =
      error.hint().empty() ? error.what() : std::string(error.what()) + "; " + error.hint();
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::corrupt_file:
      return {400, message, name(error.code())};
    case ErrorCode::not_found:
      return {404, message, name(error.code())};
    case ErrorCode::out_of_memory:
      return {413, message, name(error.code())};
    case ErrorCode::cancelled:
      return {503, message, name(error.code())};
    case ErrorCode::internal:
      break;
  }
  return {500, "internal error; see the server log", "internal"};
}

}  // namespace heed::serve
