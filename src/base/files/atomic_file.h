// Replaces a file atomically: written under another name, fsynced, then renamed. Until commit()
// returns, an existing file of that name is unchanged.
//
//   AtomicFile file("out/config.json");
//   file.write(text);
//   file.commit();
//
// One writer per path at a time. A killed process leaves PATH.partial, which the next writer removes.
//
// A path that the user named may be a link or a special file, which must stay what it is: `--out
// /dev/null` must not turn the device into a regular file. Existing::write_through is for those.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace heed {

// What happens to a symbolic link or a special file that has the path already.
enum class Existing {
  // Replaced by a regular file. For files of a folder that Heed writes: a link there may point into
  // another model's folder.
  replace,
  // A link's target is replaced atomically, the link stays. A pipe, a device or standard output under
  // another name is written as it is, without a second name: commit() is then no more than the end.
  write_through,
};

class AtomicFile {
 public:
  // Throws not_found when the folder does not exist, invalid_argument when it cannot be written.
  explicit AtomicFile(const std::string& path, Existing existing = Existing::replace);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // without commit(), removes what was written

  // Throws out_of_memory when the disk is full.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  void commit();

 private:
  [[noreturn]] void fail(const std::string& what, int error_number) const;

  std::string path_;  // without symbolic links if they are followed
  int descriptor_ = -1;
  bool is_renamed_ = true;  // by commit(); false for a special file
};

// Writes a whole file that the user named, through links and special files.
void write_output_file(const std::string& path, std::string_view content);

}  // namespace heed
