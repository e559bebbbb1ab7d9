#include "heed/error.h"

#include <string>
#include <string_view>

#include "base/check.h"

namespace heed {

namespace {

// The file as a reader of the repository knows it. __FILE__ holds the path on the machine that
// built the library, which is nobody else's business; headers are also seen through the build
// directory's include/FOLDER/FOLDER/ (cmake/HeedTargets.cmake), which is src/FOLDER/ here.
std::string path_in_repository(std::string_view file) {
  const size_t source = file.rfind("src/");
  const size_t include = file.rfind("include/");
  const auto starts_component = [&](size_t at) {
    return at != std::string_view::npos && (at == 0 || file[at - 1] == '/');
  };
  const bool has_source = starts_component(source);
  const bool has_include = starts_component(include);
  if (has_include && (!has_source || include > source)) {
    const std::string_view rest = file.substr(include + std::string_view("include/").size());
    const size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
      const std::string_view folder = rest.substr(0, slash + 1);
      const std::string_view inside = rest.substr(slash + 1);
      if (inside.substr(0, folder.size()) == folder) return "src/" + std::string(inside);
    }
    return std::string(file.substr(include));
  }
  if (has_source) return std::string(file.substr(source));
  return std::string(file.substr(file.rfind('/') + 1));  // npos + 1 is 0: the whole name
}

}  // namespace

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::corrupt_file:
      return "corrupt_file";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";  // a value cast from outside the enumeration
}

void check_failed(const char* file, int line, const char* condition, std::string_view why) {
  std::string message = "internal error: ";
  message.append(why).append(" (").append(condition).append(") at ");
  message.append(path_in_repository(file)).append(":").append(std::to_string(line));
  throw Error(ErrorCode::internal, message);
}

}  // namespace heed
