/** Finds the OpenCL ICD loader at run time. */
#include "cl.h"

#include <vector>

#include "shared-object.h"

ClTable cl;

namespace {

OpenOnce driver;

#if defined(_WIN32)
const std::vector<std::string> names = {"OpenCL.dll"};
#elif defined(__APPLE__)
const std::vector<std::string> names = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
const std::vector<std::string> names = {"libOpenCL.so.1", "libOpenCL.so"};
#endif

}  // namespace

bool IsOpen() { return driver.IsOpen(); }

std::string OpenLibrary(const std::string& path) {
  return driver.Open(path.empty() ? names : std::vector<std::string>{path}, [](void* library) -> std::string {
    ClTable table;
#define CL_FIND(result, name, arguments)                                                \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, "cl" #name)); \
  if (table.name == nullptr) return "the library lacks cl" #name ": OpenCL 1.2 or newer is needed";
    CL_FUNCTIONS(CL_FIND)
#undef CL_FIND
    cl = table;
    return "";
  });
}
