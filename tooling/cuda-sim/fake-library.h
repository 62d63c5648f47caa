/** What libraries for tests have in common: they work on the simulated driver's streams, and know what they made. Included once by each. */
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <set>

#include "cu.h"

namespace fake {

/** What the simulated driver gives away for libraries. */
struct Simulator {
  int (*planned)(const char* call) = nullptr;
  int (*work)(CUstream stream, int (*task)(void*), void* data) = nullptr;
  int (*holds)(CUstream stream, CUdeviceptr at, size_t bytes) = nullptr;

  Simulator() {
    const char* path = std::getenv("POLYGRAD_CUDA_DRIVER");
    void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    planned = reinterpret_cast<decltype(planned)>(dlsym(library, "polygradSimulatedFailure"));
    work = reinterpret_cast<decltype(work)>(dlsym(library, "polygradSimulatedWork"));
    holds = reinterpret_cast<decltype(holds)>(dlsym(library, "polygradSimulatedHolds"));
  }
};

inline const Simulator& simulator() {
  static const Simulator found;
  return found;
}

inline std::mutex guard;
/** What was made and not destroyed. */
inline std::set<const void*> made;

inline bool IsMade(const void* thing) {
  const std::lock_guard<std::mutex> lock(guard);
  return made.count(thing) == 1;
}

inline void Made(const void* thing) {
  const std::lock_guard<std::mutex> lock(guard);
  made.insert(thing);
}

/** False for what was not made, or is gone already. */
inline bool Unmade(const void* thing) {
  const std::lock_guard<std::mutex> lock(guard);
  return made.erase(thing) == 1;
}

}  // namespace fake
