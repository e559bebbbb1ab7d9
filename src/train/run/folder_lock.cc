#include "train/run/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "heed/error.h"

namespace heed {

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  constexpr mode_t kReadable = 0644;
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kReadable);
  if (descriptor_ < 0) {
    throw Error(ErrorCode::invalid_argument, path + ": " + std::generic_category().message(errno),
                "--out takes a folder that can be written");
  }
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  close(descriptor_);
  // File systems without locks (some network ones) are used without.
  descriptor_ = -1;
  if (error != EWOULDBLOCK) return;
  throw Error(ErrorCode::invalid_argument, folder + ": another training is writing there",
              "wait for it, stop it, or choose another --out");
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace heed
