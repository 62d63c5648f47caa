/** Finds NVIDIA's driver at run time. It is opened once per process and stays open: drivers do not like unloading. */
#include <mutex>
#include <vector>

#include "cu.h"
#include "shared-object.h"

CuTable cu;

namespace {

std::mutex guard;
bool opened = false;
std::string openedPath;
bool simulated = false;
bool graphs = false;

#if defined(_WIN32)
const std::vector<std::string> names = {"nvcuda.dll"};
#else
// The second is where Windows keeps it for its Linux, the third where containers are given it by some clusters.
const std::vector<std::string> names = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
#endif

}  // namespace

bool IsOpen() {
  std::lock_guard<std::mutex> lock(guard);
  return opened;
}

const std::string& LibraryPath() { return openedPath; }
bool IsSimulated() { return simulated; }
bool HasGraphs() { return graphs; }

std::string OpenLibrary(const std::string& path) {
  std::lock_guard<std::mutex> lock(guard);
  if (opened) return "";
  std::string why;
  void* library = OpenFirst(path.empty() ? names : std::vector<std::string>{path}, &why);
  if (library == nullptr) return why;
  CuTable table;
#define CU_FIND(name, symbol, arguments)                                                \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, #symbol));    \
  if (table.name == nullptr) {                                                          \
    CloseLibrary(library);                                                              \
    return "the library lacks " #symbol ": a driver for CUDA 11.4 or newer is needed";  \
  }
  CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
  bool all = true;
#define CU_FIND_GRAPH(name, symbol, arguments)                                       \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, #symbol)); \
  all = all && table.name != nullptr;
  CU_GRAPH_FUNCTIONS(CU_FIND_GRAPH)
#undef CU_FIND_GRAPH
  graphs = all;
  cu = table;
  openedPath = path;
  simulated = FindSymbol(library, "polygradSimulated") != nullptr;
  opened = true;
  return "";
}
