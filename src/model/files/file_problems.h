// Collects the problems of a file, so that one error lists them all.
//
//   FileProblems problems("model.safetensors");
//   problems.add(ErrorCode::corrupt_file, in_quotes(name) + " has no dtype");
//   problems.throw_if_any("download the file again");
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/error.h"

namespace heed {

class FileProblems {
 public:
  static constexpr size_t kShown = 5;  // the rest are counted: a bad file may have thousands

  explicit FileProblems(std::string file) : file_(std::move(file)) {}

  void add(ErrorCode code, std::string problem);
  bool empty() const { return count_ == 0; }

  // Throws one Error with the code of the first problem; nothing when there is none.
  void throw_if_any(const std::string& hint = {}) const;

 private:
  std::string file_;
  ErrorCode code_ = ErrorCode::corrupt_file;
  size_t count_ = 0;
  std::vector<std::string> shown_;
};

// A name from a file for a message: in quotes, truncated, and with visible ASCII characters only,
// because a hostile name could contain terminal escape sequences.
std::string in_quotes(std::string_view name);

}  // namespace heed
