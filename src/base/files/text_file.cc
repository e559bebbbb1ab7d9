#include "base/files/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "heed/error.h"

namespace heed {

namespace {

constexpr size_t kBufferBytes = 1 << 17;
constexpr std::string_view kGzipStart = "\x1f\x8b";
constexpr std::string_view kZstdStart = "\x28\xb5\x2f\xfd";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Raw buffered reading.
class DiskFile {
 public:
  explicit DiskFile(const std::string& path) : path_(path == "-" ? "standard input" : path) {
    descriptor_ = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      throw Error(ErrorCode::not_found,
                  path_ + " cannot be opened: " + std::generic_category().message(errno),
                  "check the path and its permissions");
    }
    struct stat status {};
    if (fstat(descriptor_, &status) == 0) {
      if (S_ISDIR(status.st_mode)) {
        close(descriptor_);
        throw Error(ErrorCode::invalid_argument, path_ + " is a folder, must be a text file",
                    "pass a file in it");
      }
      if (S_ISREG(status.st_mode)) size_ = status.st_size;
    }
  }
  ~DiskFile() { close(descriptor_); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  // The unread part of the buffer, refilled when it is empty; empty at the end of the file.
  std::span<const char> peek() {
    if (position_ == filled_) {
      position_ = filled_ = 0;
      more();
    }
    return {buffer_.data() + position_, filled_ - position_};
  }
  void take(size_t bytes) { position_ += bytes; }

  // Whether the file starts with `start`; only before anything was consumed.
  bool starts_with(std::string_view start) {
    while (filled_ < start.size() && more()) {
    }
    return std::string_view(buffer_.data(), filled_).starts_with(start);
  }

  const std::string& path() const { return path_; }
  int64_t bytes_read() const { return bytes_read_; }
  int64_t size() const { return size_; }

 private:
  bool more() {
    ssize_t got = 0;
    do {
      got = read(descriptor_, buffer_.data() + filled_, buffer_.size() - filled_);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
      throw Error(ErrorCode::corrupt_file,
                  path_ + " cannot be read: " + std::generic_category().message(errno),
                  "the disk or the network may have failed: try again");
    }
    filled_ += static_cast<size_t>(got);
    bytes_read_ += got;
    return got > 0;
  }

  std::string path_;
  int descriptor_ = -1;
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
  size_t position_ = 0, filled_ = 0;
  int64_t bytes_read_ = 0, size_ = 0;
};

[[noreturn]] void throw_damaged(const DiskFile& file, const std::string& kind,
                                const std::string& what) {
  throw Error(ErrorCode::corrupt_file, file.path() + ": damaged " + kind + " data: " + what,
              "fetch or compress the file again");
}

}  // namespace

// The bytes of the text, decompressed if necessary.
class ByteSource {
 public:
  explicit ByteSource(std::unique_ptr<DiskFile> file) : file_(std::move(file)) {}
  virtual ~ByteSource() = default;

  // Fills at least one byte of the non-empty `out`; returns 0 only at the end.
  virtual size_t read(std::span<char> out) = 0;

  const DiskFile& file() const { return *file_; }

 protected:
  std::unique_ptr<DiskFile> file_;
};

namespace {

class PlainSource : public ByteSource {
 public:
  using ByteSource::ByteSource;

  size_t read(std::span<char> out) override {
    const std::span<const char> in = file_->peek();
    const size_t bytes = std::min(in.size(), out.size());
    std::copy_n(in.begin(), bytes, out.begin());
    file_->take(bytes);
    return bytes;
  }
};

class GzipSource : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<DiskFile> file) : ByteSource(std::move(file)) {
    constexpr int kGzipWrapper = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipWrapper) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      const std::span<const char> in = file_->peek();
      if (in.empty()) {
        if (inside_member_) throw_damaged(*file_, "gzip", "the file ends early");
        return 0;
      }
      // zlib's interface lacks const; it does not write there.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      inside_member_ = true;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      file_->take(in.size() - stream_.avail_in);
      if (status == Z_STREAM_END) {  // gzip files may be concatenated
        inside_member_ = false;
        inflateReset(&stream_);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw_damaged(*file_, "gzip",
                      stream_.msg ? stream_.msg : "error " + std::to_string(status));
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool inside_member_ = false;
};

class ZstdSource : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<DiskFile> file)
      : ByteSource(std::move(file)), stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      const std::span<const char> in = file_->peek();
      ZSTD_inBuffer from{in.data(), in.size(), 0};
      // Also at the end of the file: the decoder may still hold output.
      const size_t status = ZSTD_decompressStream(stream_, &to, &from);
      if (ZSTD_isError(status)) throw_damaged(*file_, "zstd", ZSTD_getErrorName(status));
      file_->take(from.pos);
      if (!in.empty()) inside_frame_ = status != 0;
      if (in.empty() && to.pos == 0) {
        if (inside_frame_) throw_damaged(*file_, "zstd", "the file ends early");
        return 0;
      }
    }
    return to.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool inside_frame_ = false;
};

std::unique_ptr<ByteSource> open_source(const std::string& path) {
  auto file = std::make_unique<DiskFile>(path);
  if (file->starts_with(kGzipStart)) return std::make_unique<GzipSource>(std::move(file));
  if (file->starts_with(kZstdStart)) return std::make_unique<ZstdSource>(std::move(file));
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace

LineReader::LineReader(const std::string& path, int64_t max_line_bytes)
    : path_(path == "-" ? "standard input" : path),
      source_(open_source(path)),
      max_line_bytes_(max_line_bytes) {
  while (buffer_.size() < kByteOrderMark.size() && fill()) {
  }
  if (buffer_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
}

LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

bool LineReader::fill() {
  buffer_.erase(0, std::exchange(position_, 0));
  const size_t before = buffer_.size();
  buffer_.resize(before + kBufferBytes);
  const size_t got = source_->read({buffer_.data() + before, kBufferBytes});
  buffer_.resize(before + got);
  return got > 0;
}

bool LineReader::next(std::string& line) {
  size_t searched = 0;  // bytes after position_ without \n
  for (;;) {
    const size_t end = buffer_.find('\n', position_ + searched);
    const bool found = end != std::string::npos;
    const size_t length = (found ? end : buffer_.size()) - position_;
    if (static_cast<int64_t>(length) > max_line_bytes_) {
      throw Error(ErrorCode::invalid_argument,
                  path_ + ":" + std::to_string(line_number_ + 1) + ": a line must not exceed " +
                      std::to_string(max_line_bytes_) + " bytes",
                  "is this a text file with one sentence per line?");
    }
    if (found || !fill()) {
      if (!found && length == 0) return false;
      line.assign(buffer_, position_, length);
      position_ += length + (found ? 1 : 0);
      ++line_number_;
      if (found && line.ends_with('\r')) line.pop_back();
      return true;
    }
    searched = length;
  }
}

std::string LineReader::where() const { return path_ + ":" + std::to_string(line_number_); }
int64_t LineReader::bytes_read() const { return source_->file().bytes_read(); }
int64_t LineReader::file_bytes() const { return source_->file().size(); }

}  // namespace heed
