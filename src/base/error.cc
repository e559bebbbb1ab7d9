#include "heed/error.h"

#include <array>
#include <string>
#include <string_view>

#include "base/check.h"
#include "heed/enum_names.h"

namespace heed {

template <>
inline constexpr std::array kEnumNames<ErrorCode>{
    EnumName<ErrorCode>{ErrorCode::invalid_argument, "invalid_argument"},
    EnumName<ErrorCode>{ErrorCode::not_found, "not_found"},
    EnumName<ErrorCode>{ErrorCode::corrupt_file, "corrupt_file"},
    EnumName<ErrorCode>{ErrorCode::unsupported, "unsupported"},
    EnumName<ErrorCode>{ErrorCode::out_of_memory, "out_of_memory"},
    EnumName<ErrorCode>{ErrorCode::cancelled, "cancelled"},
    EnumName<ErrorCode>{ErrorCode::internal, "internal"}};

namespace {

// The file's path in the repository. __FILE__ is the path on the build machine, which must not leak;
// headers are also included through the build directory's include/FOLDER/FOLDER/
// (cmake/HeedTargets.cmake), which is src/FOLDER/ here.
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

// name_of() returns whole literals, so data() ends with a NUL.
const char* name(ErrorCode code) { return name_of(code).data(); }

void check_failed(const char* file, int line, const char* condition, std::string_view why) {
  std::string message = "internal error: ";
  message.append(why).append(" (").append(condition).append(") at ");
  message.append(path_in_repository(file)).append(":").append(std::to_string(line));
  throw Error(ErrorCode::internal, message);
}

}  // namespace heed
