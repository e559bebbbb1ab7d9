// Locks a folder for one process: two trainings in one folder would corrupt both.
//
//   const FolderLock lock("run");      // throws while another process holds it
//
// It is an operating system lock on a file in the folder, so it ends with its process. The file
// stays, and has no meaning by itself.
#pragma once

#include <string>

namespace heed {

class FolderLock {
 public:
  // Throws invalid_argument if another process holds it, or the file cannot be written.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace heed
