// A temporary folder, for readers of files.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace heed::fuzz {

class ScratchFolder {
 public:
  ScratchFolder() : path_(place() / ("heed_fuzz." + std::to_string(getpid()))) { empty(); }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  void empty() const {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  // Returns the file's path.
  std::string write(const char* name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  std::string path() const { return path_; }

 private:
  // On a RAM disk if there is one: a busy disk looks like a reader that hangs.
  static std::filesystem::path place() {
    const std::filesystem::path memory = "/dev/shm";
    return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

// The text before and after the first NUL.
inline std::pair<std::string_view, std::string_view> split_at_nul(std::string_view text) {
  const size_t cut = std::min(text.find('\0'), text.size());
  return {text.substr(0, cut), text.substr(std::min(cut + 1, text.size()))};
}

// The parts between NULs; the last one is the rest, including NULs. Missing parts are empty.
template <size_t kParts>
std::array<std::string_view, kParts> split_at_nuls(std::string_view text) {
  std::array<std::string_view, kParts> parts;
  for (size_t i = 0; i + 1 < kParts; ++i) std::tie(parts[i], text) = split_at_nul(text);
  parts.back() = text;
  return parts;
}

}  // namespace heed::fuzz
