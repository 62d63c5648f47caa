/** Libraries opened at run time, on every system. */
#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <vector>

/** The first of the names that can be opened; null with the reason of the first that could not. */
void* OpenFirst(const std::vector<std::string>& names, std::string* why);
void* FindSymbol(void* library, const char* name);
void CloseLibrary(void* library);

/** A library that is opened once for the process and stays open: drivers do not like unloading. */
class OpenOnce {
 public:
  /** Also orders what is read afterwards behind what another thread wrote when it opened the library. */
  bool IsOpen();

  /**
   * Opens the first of the names that can be opened. `read` takes functions from it, or says what it lacks: then it is closed again. Returns why it is not
   * open; an empty text where it is.
   */
  std::string Open(const std::vector<std::string>& names, const std::function<std::string(void* library)>& read);

 private:
  std::mutex guard_;
  bool open_ = false;
};
