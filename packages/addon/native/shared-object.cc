#include "shared-object.h"

#if defined(_WIN32)

#include "win32.h"

namespace {

/**
 * Of a bare name only what the system itself keeps: nothing in the folder where a program was started. Of a path, what lies beside it, too.
 */
DWORD PlacesFor(const std::string& name) {
  const bool isPath = name.find_first_of("\\/") != std::string::npos;
  return isPath ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS : LOAD_LIBRARY_SEARCH_SYSTEM32;
}

void* Open(const std::string& name, std::string* why) {
  std::wstring path = WideOf(name);
  // Paths are whole and of backslashes where others than the usual folders are searched.
  if (path.find_first_of(L"\\/") != std::wstring::npos) path = FullPath(path);
  // No window that says what is missing, and waits.
  DWORD before = 0;
  SetThreadErrorMode(SEM_FAILCRITICALERRORS, &before);
  HMODULE module = LoadLibraryExW(path.c_str(), nullptr, PlacesFor(name));
  const DWORD error = GetLastError();
  SetThreadErrorMode(before, nullptr);
  if (module == nullptr) *why = name + ": " + SystemMessage(error);
  return reinterpret_cast<void*>(module);
}

}  // namespace

void* FindSymbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}

void CloseLibrary(void* library) { FreeLibrary(reinterpret_cast<HMODULE>(library)); }

#else

#include <dlfcn.h>

namespace {

void* Open(const std::string& name, std::string* why) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *why = dlerror();
  return library;
}

}  // namespace

void* FindSymbol(void* library, const char* name) { return dlsym(library, name); }
void CloseLibrary(void* library) { dlclose(library); }

#endif

void* OpenFirst(const std::vector<std::string>& names, std::string* why) {
  why->clear();
  for (const std::string& name : names) {
    std::string reason;
    void* library = Open(name, &reason);
    if (library != nullptr) return library;
    if (why->empty()) *why = reason;
  }
  return nullptr;
}

bool OpenOnce::IsOpen() {
  const std::lock_guard<std::mutex> lock(guard_);
  return open_;
}

std::string OpenOnce::Open(const std::vector<std::string>& names, const std::function<std::string(void* library)>& read) {
  const std::lock_guard<std::mutex> lock(guard_);
  if (open_) return "";
  std::string why;
  void* library = OpenFirst(names, &why);
  if (library == nullptr) return why;
  why = read(library);
  open_ = why.empty();
  if (!open_) CloseLibrary(library);
  return why;
}
