// The lines of a text file, plain or compressed (gzip, zstd), one after the other.
//
//   LineReader reader("corpus.en.gz");
//   std::string line;
//   while (reader.next(line)) if (!is_good(line)) report(reader.where());   // "corpus.en.gz:17"
//
// Compression is told by a file's first bytes, not by its name: no text begins as they do. A line
// ends at \n or \r\n, neither of which it keeps; a last line needs none. A byte order mark at the
// start is skipped. Lines are bytes: whether they are UTF-8 is the caller's question.
// Memory is a few buffers and one line, whatever the size of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace heed {

class ByteSource;

class LineReader {
 public:
  // A longer line throws: rather than text it is a binary file, or a trap of compressed zeros.
  static constexpr int64_t kMaxLineBytes = int64_t{1} << 30;

  // "-" is standard input. Throws not_found when the file cannot be opened, invalid_argument when
  // it is a folder.
  explicit LineReader(const std::string& path, int64_t max_line_bytes = kMaxLineBytes);
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // Puts the next line into `line`; false at the end of the file. Throws corrupt_file, with the
  // place, when the compressed data is damaged or ends early.
  bool next(std::string& line);

  const std::string& path() const { return path_; }
  int64_t line_number() const { return line_number_; }  // of the last line given, from 1; 0 before
  std::string where() const;                            // "path:line_number"

  // How far the reading has come: bytes of the file as it lies on the disk. file_bytes() is 0 when
  // it has no size of its own, as a pipe has none.
  int64_t bytes_read() const;
  int64_t file_bytes() const;

 private:
  bool fill();

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;  // [position_, buffer_.size()) has been read and not given out
  size_t position_ = 0;
  int64_t max_line_bytes_;
  int64_t line_number_ = 0;
};

}  // namespace heed
