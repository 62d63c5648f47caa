#include "shared-object.h"

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace {

#if defined(_WIN32)
void* Open(const std::string& name, std::string* why) {
  HMODULE module = LoadLibraryA(name.c_str());
  if (module == nullptr) *why = name + ": LoadLibrary failed with error " + std::to_string(GetLastError());
  return reinterpret_cast<void*>(module);
}
#else
void* Open(const std::string& name, std::string* why) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *why = dlerror();
  return library;
}
#endif

}  // namespace

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

#if defined(_WIN32)
void* FindSymbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
void CloseLibrary(void* library) { FreeLibrary(reinterpret_cast<HMODULE>(library)); }
#else
void* FindSymbol(void* library, const char* name) { return dlsym(library, name); }
void CloseLibrary(void* library) { dlclose(library); }
#endif
