// A folder of the fuzzer's own, for readers that want files.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace heed::fuzz {

class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() / ("heed_fuzz." + std::to_string(getpid()))) {
    empty();
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  void empty() const {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  // Returns its path.
  std::string write(const char* name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// What stands before the first NUL, and what after it.
inline std::pair<std::string_view, std::string_view> split_at_nul(std::string_view text) {
  const size_t cut = std::min(text.find('\0'), text.size());
  return {text.substr(0, cut), text.substr(std::min(cut + 1, text.size()))};
}

}  // namespace heed::fuzz
