// Lines of files or of standard input, in portions.
//
//   LineFeed feed({"-"});
//   for (std::vector<std::string> lines; feed.next(1000, lines);) …
//
// Lines of standard input are returned as soon as they arrive, so that an interactive program gets its
// answer; lines of files in large portions.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace heed::cli {

class LineFeed {
 public:
  // "-" is standard input, and so is an empty list.
  explicit LineFeed(std::vector<std::string> paths);
  ~LineFeed();
  LineFeed(const LineFeed&) = delete;
  LineFeed& operator=(const LineFeed&) = delete;

  // Between one and `most` lines; false at the end. Throws not_found and other file errors.
  bool next(size_t most, std::vector<std::string>& lines);

 private:
  struct Reader;  // of standard input
  bool next_from_input(size_t most, std::vector<std::string>& lines);

  std::vector<std::string> paths_;
  size_t path_ = 0;                  // current
  std::vector<std::string> loaded_;  // lines that were not returned yet
  size_t given_ = 0;
  std::shared_ptr<Reader> reader_;
};

}  // namespace heed::cli
