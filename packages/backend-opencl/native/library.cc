/** Finds the OpenCL ICD loader at run time. It is opened once per process and stays open: drivers do not like unloading. */
#include "cl.h"

#include <mutex>
#include <vector>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

ClTable cl;

namespace {

std::mutex guard;
bool opened = false;

#if defined(_WIN32)
const std::vector<std::string> names = {"OpenCL.dll"};
void* Open(const std::string& name, std::string* why) {
  HMODULE module = LoadLibraryA(name.c_str());
  if (module == nullptr) *why = name + ": LoadLibrary failed with error " + std::to_string(GetLastError());
  return reinterpret_cast<void*>(module);
}
void* Find(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
void Close(void* library) { FreeLibrary(reinterpret_cast<HMODULE>(library)); }
#else
#if defined(__APPLE__)
const std::vector<std::string> names = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
const std::vector<std::string> names = {"libOpenCL.so.1", "libOpenCL.so"};
#endif
void* Open(const std::string& name, std::string* why) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *why = dlerror();
  return library;
}
void* Find(void* library, const char* name) { return dlsym(library, name); }
void Close(void* library) { dlclose(library); }
#endif

}  // namespace

bool IsOpen() {
  std::lock_guard<std::mutex> lock(guard);
  return opened;
}

std::string OpenLibrary(const std::string& path) {
  std::lock_guard<std::mutex> lock(guard);
  if (opened) return "";
  void* library = nullptr;
  std::string why;
  for (const std::string& name : path.empty() ? names : std::vector<std::string>{path}) {
    std::string reason;
    library = Open(name, &reason);
    if (library != nullptr) break;
    if (why.empty()) why = reason;
  }
  if (library == nullptr) return why;
  ClTable table;
#define CL_FIND(result, name, arguments)                                                     \
  table.name = reinterpret_cast<decltype(table.name)>(Find(library, "cl" #name));            \
  if (table.name == nullptr) {                                                               \
    Close(library);                                                                          \
    return "the library lacks cl" #name ": OpenCL 1.2 or newer is needed";                   \
  }
  CL_FUNCTIONS(CL_FIND)
#undef CL_FIND
  cl = table;
  opened = true;
  return "";
}
