#include "file-lock.h"

#include <chrono>
#include <thread>

namespace {

/** A stopped process (Ctrl-Z) keeps its locks, so waiting has a limit. */
constexpr std::chrono::minutes kLongestWait{2};
constexpr std::chrono::milliseconds kBetweenLooks{3};

}  // namespace

#if defined(_WIN32)

#include "win32.h"

namespace {

/** One byte represents the file. */
constexpr DWORD kLockedBytes = 1;

HANDLE OpenOwn(const std::string& path) {
  const DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE;
  const DWORD options = FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT;
  HANDLE file = CreateFileW(WideOf(path).c_str(), GENERIC_READ | GENERIC_WRITE, shared, nullptr, OPEN_ALWAYS, options, nullptr);
  BY_HANDLE_FILE_INFORMATION facts;
  if (file == INVALID_HANDLE_VALUE) return file;
  constexpr DWORD unwanted = FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY;
  if (GetFileInformationByHandle(file, &facts) && (facts.dwFileAttributes & unwanted) == 0) return file;
  CloseHandle(file);
  return INVALID_HANDLE_VALUE;
}

bool Lock(HANDLE file) {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  for (;;) {
    OVERLAPPED at = {};
    if (LockFileEx(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, kLockedBytes, 0, &at)) return true;
    if (GetLastError() != ERROR_LOCK_VIOLATION || std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

FileLock::FileLock(const std::string& path) {
  if (path.empty()) return;
  HANDLE file = OpenOwn(path);
  if (file == INVALID_HANDLE_VALUE) return;
  if (Lock(file)) file_ = reinterpret_cast<intptr_t>(file);
  else CloseHandle(file);
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  OVERLAPPED at = {};
  UnlockFileEx(reinterpret_cast<HANDLE>(file_), 0, kLockedBytes, 0, &at);
  CloseHandle(reinterpret_cast<HANDLE>(file_));
}

#else

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace {

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
  const int file = OpenOwn(path);
  if (file < 0) return;
  if (Lock(file)) file_ = file;
  else close(file);
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  // A child between fork and exec has the file open too: closing it here would not be enough.
  flock(static_cast<int>(file_), LOCK_UN);
  close(static_cast<int>(file_));
}

#endif
