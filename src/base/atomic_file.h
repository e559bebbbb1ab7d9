// A file that appears whole or not at all: written under another name, flushed to the disk, then
// renamed. Until commit() returns, a file that had the name before is untouched.
//
//   AtomicFile file("out/config.json");
//   file.write(text);
//   file.commit();
//
// One writer a path at a time. What a killed process leaves, PATH.partial, the next writer removes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace heed {

class AtomicFile {
 public:
  // Throws not_found when the folder does not exist, invalid_argument when it cannot be written.
  explicit AtomicFile(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // without commit(), nothing remains

  // Throws out_of_memory when the disk is full.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  void commit();

 private:
  [[noreturn]] void fail(const std::string& what, int error_number) const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace heed
