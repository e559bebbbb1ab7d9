#include "cli/out_folder.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "heed/error.h"

namespace heed::cli {

namespace fs = std::filesystem;

void check_out_folder(const std::string& model, const std::string& out, bool replaceable) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::invalid_argument, out + ": " + why, hint);
  };
  std::error_code none;
  if (fs::equivalent(model, out, none)) {
    refuse("the model's own folder", "write to another folder, so that nothing is lost");
  }
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
    refuse("is not empty", "give a new or an empty folder, or --force to replace the model in it");
  }
}

void remove_stale_files(const std::string& model, const std::string& out) {
  const auto belongs_to_a_tokenizer = [](const std::string& name) {
    constexpr std::string_view kNames[] = {
        "vocab.txt",       "vocab.json",     "added_tokens.json",       "special_tokens_map.json",
        "merges.txt",      "spiece.model",   "sentencepiece.bpe.model", "generation_config.json",
        "tokenizer.model", "tokenizer.json", "tokenizer_config.json",   "chat_template.jinja",
        "source.spm",      "target.spm"};
    return std::ranges::find(kNames, name) != std::end(kNames);
  };
  std::vector<fs::path> stale;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(out, none)) {
    const std::string name = entry.path().filename().string();
    if (belongs_to_a_tokenizer(name) && !fs::exists(fs::path(model) / name, none)) {
      stale.push_back(entry.path());
    }
  }
  for (const fs::path& path : stale) fs::remove(path, none);
}

}  // namespace heed::cli
