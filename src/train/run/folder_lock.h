// Holds a folder for one process: two trainings that write into one folder would ruin both.
//
//   const FolderLock lock("run");      // throws while another process has it
//
// It is the operating system's lock on a file in the folder, so it is gone when its process is,
// however that ends. The file stays; by itself it means nothing.
#pragma once

#include <string>

namespace heed {

class FolderLock {
 public:
  // Throws invalid_argument when another holds it, or the file cannot be written.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace heed
