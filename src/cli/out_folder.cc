#include "cli/out_folder.h"

#include <unistd.h>

#include <filesystem>

#include "heed/error.h"
#include "heed/model_files.h"

namespace heed::cli {

namespace fs = std::filesystem;

void check_out_folder(const std::string& model, const std::string& out, bool replaceable) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::invalid_argument, out + ": " + why, hint);
  };
  check_another_folder(model, out);
  std::error_code none;
  if (!fs::exists(out, none)) {
    fs::path parent = fs::absolute(out, none).lexically_normal();
    while (!fs::exists(parent, none) && parent.has_relative_path()) parent = parent.parent_path();
    if (!fs::is_directory(parent, none) || access(parent.c_str(), W_OK | X_OK) != 0) {
      refuse("cannot be made in " + parent.string(), "choose a folder that can be written");
    }
    return;
  }
  if (!fs::is_directory(out, none)) refuse("is no folder", "give a new or an empty folder");
  if (access(out.c_str(), W_OK | X_OK) != 0) {
    refuse("cannot be written", "choose a folder that can be written");
  }
  if (!replaceable && !fs::is_empty(out, none)) {
    refuse("is not empty", "give a new or an empty folder, or --force to replace what is in it");
  }
}

}  // namespace heed::cli
