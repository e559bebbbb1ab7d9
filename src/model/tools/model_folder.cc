// What a path that should be a model folder is instead.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "heed/error.h"
#include "heed/model_files.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr const char* kContents =
    "a model folder contains config.json, model.safetensors and the tokenizer's files";
constexpr const char* kNotGguf =
    "use the model's Hugging Face folder: config.json, *.safetensors and the tokenizer's files";

bool is_gguf(const fs::path& path) {
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  file.read(magic.data(), magic.size());
  return path.extension() == ".gguf" || (file && std::string_view(magic.data(), 4) == "GGUF");
}

// "org/name" as on the Hugging Face Hub, and not a path with a slip in it.
bool is_hub_name(const std::string& path) {
  const size_t slash = path.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == path.size()) return false;
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  const std::string owner = path.substr(0, slash), name = path.substr(slash + 1);
  std::error_code none;
  return std::ranges::all_of(owner, is_fine) && std::ranges::all_of(name, is_fine) &&
         owner.front() != '.' && !fs::exists(owner, none);
}

// The models below: checkpoints, snapshots in the Hub's cache, or a collection.
std::set<std::string> models_below(const fs::path& folder) {
  std::set<std::string> models;
  std::error_code none;
  for (const fs::path& parent : {folder, folder / "snapshots"}) {
    for (const auto& entry : fs::directory_iterator(parent, none)) {
      if (fs::exists(entry.path() / "config.json", none)) models.insert(entry.path().string());
    }
  }
  return models;
}

bool has_gguf(const fs::path& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".gguf") return true;
  }
  return false;
}

}  // namespace

void check_model_folder(const std::string& path) {
  std::error_code none;
  const auto refuse = [&](ErrorCode code, const std::string& why, const std::string& hint) {
    throw Error(code, path + ": " + why, hint);
  };
  if (!fs::exists(path, none)) {
    if (is_hub_name(path)) {
      refuse(ErrorCode::not_found, "no such folder; models are not downloaded from the Hub",
             "download it first, then give the folder: huggingface-cli download " + path +
                 " --local-dir DIR");
    }
    refuse(ErrorCode::not_found, "no such folder", kContents);
  }
  if (!fs::is_directory(path, none)) {
    if (is_gguf(path)) refuse(ErrorCode::unsupported, "GGUF files are not supported", kNotGguf);
    const fs::path parent = fs::path(path).parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    const bool is_model = fs::exists(fs::path(folder) / "config.json", none);
    refuse(ErrorCode::invalid_argument, "must be the model's folder, got a file",
           is_model ? "give the folder that it is in: " + folder : kContents);
  }
  if (fs::exists(fs::path(path) / "config.json", none)) return;
  if (has_gguf(path)) {
    refuse(ErrorCode::unsupported, "there is no config.json, and GGUF files are not supported",
           kNotGguf);
  }
  const std::set<std::string> below = models_below(path);
  refuse(ErrorCode::not_found, "must be a model folder, but there is no config.json in it",
         below.empty()       ? kContents
         : below.size() == 1 ? "did you mean " + *below.begin() + "?"
                             : "give one of the models in it, such as " + *below.begin());
}

}  // namespace heed
