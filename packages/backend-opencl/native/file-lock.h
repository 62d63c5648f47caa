/** A lock between processes, and between threads of one: it is given back when whoever holds it ends, in whatever way. */
#pragma once
#include <cstdint>
#include <string>

class FileLock {
 public:
  /**
   * Waits for the lock on a file, which is made where it is missing. It goes on without where there is none to be had: for the empty path,
   * where the file cannot be opened or belongs to somebody else, and after two minutes.
   */
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  /** What the system calls the open file. */
  intptr_t file_ = -1;
};
