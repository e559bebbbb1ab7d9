#include "base/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "heed/error.h"

namespace heed {

namespace {

// Linux writes at most about 2 GB per call; smaller pieces also detect a full disk early.
constexpr size_t kWritePiece = size_t{1} << 26;

std::string partial(const std::string& path) { return path + ".partial"; }

// A rename is durable after an fsync of its folder. Best effort: some file systems cannot do it.
void flush_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// The path behind symbolic links; the last one's target need not exist. Not
// filesystem::canonical(), which requires that.
std::string follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::filesystem::path at = path;
  std::error_code none;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(at, none); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(at, none);
    if (none) break;
    at = at.parent_path() / target;  // an absolute target replaces the folder
  }
  return at;
}

// A descriptor for a special file at `path`, or -1 if it is a regular file or does not exist.
// Throws nothing; a file that cannot be opened leaves errno set and gives -2.
int open_special(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return -1;
  // /dev/stdout names whatever standard output is, also a regular file. Another descriptor for it
  // would write over what was printed before, and a rename would leave the reader with the old file.
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open_file {};
    if (fstat(standard, &open_file) != 0) continue;
    if (open_file.st_dev != status.st_dev || open_file.st_ino != status.st_ino) continue;
    const int copy = fcntl(standard, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -2 : copy;
  }
  if (S_ISREG(status.st_mode)) return -1;
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  return descriptor < 0 ? -2 : descriptor;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, Existing existing) : path_(path) {
  if (existing == Existing::write_through) {
    descriptor_ = open_special(path_);
    if (descriptor_ == -2) {
      descriptor_ = -1;
      fail("cannot be opened", errno);
    }
    is_renamed_ = descriptor_ < 0;
    if (!is_renamed_) return;
    path_ = follow_links(path_);
  }
  unlink(partial(path_).c_str());
  // O_EXCL does not follow a symbolic link at this path.
  descriptor_ = open(partial(path_).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be created", errno);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_renamed_(other.is_renamed_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (is_renamed_) unlink(partial(path_).c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  HEED_CHECK(descriptor_ >= 0, "a file must not be written after commit()");
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kWritePiece));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("cannot be written", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  HEED_CHECK(descriptor_ >= 0, "a file must be committed once");
  if (!is_renamed_) {  // pipes and devices cannot be synced
    if (close(std::exchange(descriptor_, -1)) != 0) fail("cannot be written", errno);
    return;
  }
  if (fsync(descriptor_) != 0) fail("cannot be written", errno);
  if (rename(partial(path_).c_str(), path_.c_str()) != 0) fail("cannot be replaced", errno);
  close(std::exchange(descriptor_, -1));
  flush_folder_of(path_);
}

void AtomicFile::fail(const std::string& what, int error_number) const {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string hint = "choose a writable folder";
  if (error_number == ENOENT) {
    code = ErrorCode::not_found;
    hint = "create the folder first";
  } else if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    code = ErrorCode::out_of_memory;
    hint = "free some space, or write elsewhere";
  }
  throw Error(code, path_ + ": " + what + ": " + std::generic_category().message(error_number),
              hint);
}

void write_output_file(const std::string& path, std::string_view content) {
  AtomicFile file(path, Existing::write_through);
  file.write(content);
  file.commit();
}

}  // namespace heed
