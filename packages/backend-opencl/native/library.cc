/** Finds the OpenCL ICD loader at run time. It is opened once per process and stays open: drivers do not like unloading. */
#include "cl.h"

#include <mutex>
#include <vector>

#include "shared-object.h"

ClTable cl;

namespace {

std::mutex guard;
bool opened = false;

#if defined(_WIN32)
const std::vector<std::string> names = {"OpenCL.dll"};
#elif defined(__APPLE__)
const std::vector<std::string> names = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
const std::vector<std::string> names = {"libOpenCL.so.1", "libOpenCL.so"};
#endif

}  // namespace

bool IsOpen() {
  std::lock_guard<std::mutex> lock(guard);
  return opened;
}

std::string OpenLibrary(const std::string& path) {
  std::lock_guard<std::mutex> lock(guard);
  if (opened) return "";
  std::string why;
  void* library = OpenFirst(path.empty() ? names : std::vector<std::string>{path}, &why);
  if (library == nullptr) return why;
  ClTable table;
#define CL_FIND(result, name, arguments)                                                     \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, "cl" #name));      \
  if (table.name == nullptr) {                                                               \
    CloseLibrary(library);                                                                   \
    return "the library lacks cl" #name ": OpenCL 1.2 or newer is needed";                   \
  }
  CL_FUNCTIONS(CL_FIND)
#undef CL_FIND
  cl = table;
  opened = true;
  return "";
}
