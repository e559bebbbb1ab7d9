// Reads a text file line by line, plain or compressed (gzip, zstd).
//
//   LineReader reader("corpus.en.gz");
//   std::string line;
//   while (reader.next(line)) if (!is_good(line)) report(reader.where());   // "corpus.en.gz:17"
//
// Compression is detected by the magic bytes, not by the file name. A line ends at \n or \r\n, which
// is removed; the last line needs none. A byte order mark at the start is skipped. Lines are bytes;
// UTF-8 is not checked.
// Memory: a few buffers and one line, for a file of any size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace heed {

class ByteSource;

class LineReader {
 public:
  // A longer line throws: it is a binary file or a decompression bomb.
  static constexpr int64_t kMaxLineBytes = int64_t{1} << 30;

  // "-" is standard input. Throws not_found when the file cannot be opened, invalid_argument when
  // it is a folder.
  explicit LineReader(const std::string& path, int64_t max_line_bytes = kMaxLineBytes);
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // Reads the next line into `line`; false at the end of the file. Throws corrupt_file when the
  // compressed data is damaged or truncated.
  bool next(std::string& line);

  const std::string& path() const { return path_; }
  int64_t line_number() const { return line_number_; }  // of the last line given, from 1; 0 before
  std::string where() const;                            // "path:line_number"

  // Progress in bytes of the file on disk (compressed).
  // file_bytes() is 0 for a pipe.
  int64_t bytes_read() const;
  int64_t file_bytes() const;

 private:
  bool fill();

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;  // [position_, buffer_.size()) is not yet returned
  size_t position_ = 0;
  int64_t max_line_bytes_;
  int64_t line_number_ = 0;
};

}  // namespace heed
