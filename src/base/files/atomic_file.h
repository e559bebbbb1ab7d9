// Replaces a file atomically: written under another name, fsynced, then renamed. Until commit()
// returns, an existing file of that name is unchanged.
//
//   AtomicFile file("out/config.json");
//   file.write(text);
//   file.commit();
//
// One writer per path at a time. A killed process leaves PATH.partial, which the next writer removes.
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
  ~AtomicFile();  // without commit(), removes what was written

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
