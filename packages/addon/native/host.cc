/**
 * On Windows: the functions of Node-API, found in the program that runs Node, whatever its name (node.exe, electron.exe), or in the library
 * it has Node from. A list of imports could only say node.exe. They are looked up once, while the addon is loaded. Those that an older Node
 * lacks fail when they are called, as any of them may.
 *
 * Loading on the first call, as by delayed imports, is not for this: the code that dlltool makes for it keeps no floating-point arguments.
 */
#include <windows.h>

// NAMES(X): X(napi_async_destroy) and so on, which build.mjs takes from the headers of Node-API.
#include "node-api-names.h"

#define PLACE(name) extern "C" { void* place_of_##name = nullptr; }
NAMES(PLACE)
#undef PLACE

// Each function is a jump to where it was found: arguments stay where they are.
#define JUMP(name) __asm__(".text\n.p2align 4\n.globl " #name "\n" #name ":\n\tjmp *place_of_" #name "(%rip)\n");
NAMES(JUMP)
#undef JUMP

namespace {

/** napi_generic_failure: all of them give a status. */
int Missing() { return 9; }

/** The libraries of programs that have Node in one, and the program itself. */
constexpr const char* kHosts[] = {"libnode.dll", "node.dll", "nw.dll", nullptr};

void* Find(const char* name) {
  for (const char* host : kHosts) {
    HMODULE module = GetModuleHandleA(host);
    FARPROC found = module == nullptr ? nullptr : GetProcAddress(module, name);
    if (found != nullptr) return reinterpret_cast<void*>(found);
  }
  return reinterpret_cast<void*>(Missing);
}

__attribute__((constructor)) void FindAll() {
#define FIND(name) place_of_##name = Find(#name);
  NAMES(FIND)
#undef FIND
}

}  // namespace
