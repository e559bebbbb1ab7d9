// Lines of files or of standard input, as many as there are at the moment.
//
//   LineFeed feed({"-"});
//   for (std::vector<std::string> lines; feed.next(1000, lines);) …
//
// From standard input a line is given as soon as it is there, so that a program which writes one
// and waits for its answer gets it; from a file they come in large portions.
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

  // At least one and at most `most` lines; false: there are no more. Throws not_found and what else
  // can happen to files.
  bool next(size_t most, std::vector<std::string>& lines);

 private:
  struct Reader;  // of standard input
  bool next_from_input(size_t most, std::vector<std::string>& lines);

  std::vector<std::string> paths_;
  size_t path_ = 0;                  // at hand
  std::vector<std::string> loaded_;  // lines of it that were not given
  size_t given_ = 0;
  std::shared_ptr<Reader> reader_;
};

}  // namespace heed::cli
