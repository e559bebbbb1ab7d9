#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "heed/error.h"

namespace heed {

namespace {

// Closes the file; its mapping stays valid.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::string reason(int error_number) { return std::generic_category().message(error_number); }

void unmap(const std::byte* data, size_t size) {
  if (data != nullptr) munmap(const_cast<std::byte*>(data), size);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe would otherwise block until a writer opens it.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0)
    throw Error(ErrorCode::not_found, path + ": cannot be opened: " + reason(errno),
                "check the path and its permissions");

  struct stat status {};
  if (fstat(file.number(), &status) != 0)
    throw Error(ErrorCode::not_found, path + ": cannot be examined: " + reason(errno));
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::invalid_argument,
                path + ": must be a regular file, got " +
                    (S_ISDIR(status.st_mode) ? "a directory" : "a pipe or a device"),
                "pass the path of a regular file");
  }

  const uint64_t size = static_cast<uint64_t>(status.st_size);
  if (size > std::numeric_limits<size_t>::max())
    throw Error(ErrorCode::unsupported, path + ": too large for the address space");
  if (size == 0) return;  // nothing to map, and mmap refuses an empty range
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) {
    const int cause = errno;
    throw Error(cause == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::unsupported,
                path + ": cannot be mapped into memory: " + reason(cause));
  }
  data_ = static_cast<const std::byte*>(data);
  size_ = size;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap(data_, size_);
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(data_, size_); }

std::span<const std::byte> MappedFile::bytes(uint64_t offset, uint64_t length,
                                             const char* what) const {
  // Written so that no sum can overflow: both numbers may be read from an untrusted file.
  if (offset > size_ || length > size_ - offset) {
    throw Error(ErrorCode::corrupt_file,
                path_ + ": " + what + " must be " + std::to_string(length) + " bytes at offset " +
                    std::to_string(offset) + ", but the file has only " + std::to_string(size_) +
                    " bytes",
                "the file may be truncated: copy or download it again");
  }
  if (length == 0) return {};
  return {data_ + offset, static_cast<size_t>(length)};
}

void MappedFile::drop_pages() const {
  // Advisory: a failure costs only memory.
  if (size_ > 0) (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

}  // namespace heed
