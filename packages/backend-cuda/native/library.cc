/** Finds NVIDIA's driver at run time. */
#include <vector>

#include "cu.h"
#include "shared-object.h"

CuTable cu;

namespace {

OpenOnce driver;
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

bool IsOpen() { return driver.IsOpen(); }
const std::string& LibraryPath() { return openedPath; }
bool IsSimulated() { return simulated; }
bool HasGraphs() { return graphs; }

std::string OpenLibrary(const std::string& path) {
  return driver.Open(path.empty() ? names : std::vector<std::string>{path}, [&](void* library) -> std::string {
    CuTable table;
#define CU_FIND(name, symbol, arguments)                                             \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, #symbol)); \
  if (table.name == nullptr) return "the library lacks " #symbol ": a driver for CUDA 11.4 or newer is needed";
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
    return "";
  });
}
