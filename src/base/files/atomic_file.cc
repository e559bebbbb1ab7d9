#include "base/files/atomic_file.h"

#include <fcntl.h>
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

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  unlink(partial(path_).c_str());
  // O_EXCL does not follow a symbolic link at this path.
  descriptor_ = open(partial(path_).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be created", errno);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(partial(path_).c_str());
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

}  // namespace heed
