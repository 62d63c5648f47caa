#include "file-lock.h"

#if defined(_WIN32)

FileLock::FileLock(const std::string&) {}
FileLock::~FileLock() {}

#else

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace {

/** A process that was stopped (Ctrl-Z) keeps its locks: nobody waits for ever. */
constexpr std::chrono::minutes kLongestWait{2};
constexpr std::chrono::milliseconds kBetweenLooks{3};

int OpenOwn(const std::string& path) {
  // What is started meanwhile, such as a linker, must not keep the lock.
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return -1;
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) return file;
  close(file);
  return -1;
}

bool Lock(int file) {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace

FileLock::FileLock(const std::string& path) {
  if (path.empty()) return;
  file_ = OpenOwn(path);
  if (file_ < 0 || Lock(file_)) return;
  close(file_);
  file_ = -1;
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  // A child between fork and exec has the file open too: closing it here would not be enough.
  flock(file_, LOCK_UN);
  close(file_);
}

#endif
