// A read-only memory-mapped file with bounds-checked access.
//
// The bytes stay valid as long as the MappedFile, also when the file is removed or replaced. A file
// that another program truncates in place raises SIGBUS, which no check can prevent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace heed {

class MappedFile {
 public:
  // Throws not_found when it cannot be opened, invalid_argument when it is not a regular file.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // `length` bytes from `offset`; throws corrupt_file, naming `what`, when they reach past the end.
  std::span<const std::byte> bytes(uint64_t offset, uint64_t length, const char* what) const;

  // Drops resident pages; a later access reads them from the file again. For a reader that has copied
  // what it needs.
  void drop_pages() const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace heed
