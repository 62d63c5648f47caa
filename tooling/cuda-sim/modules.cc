/** Modules from PTX, and running their kernels by the interpreter. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim.h"

using sim::Find;
using sim::handles;

namespace {

/** The newest version of PTX that a driver takes, by CUDA's version. */
unsigned NewestPtx(int driver) {
  const int minor = driver % 1000 / 10;
  if (driver < 12000) return static_cast<unsigned>(70 + minor);
  if (driver < 13000) {
    static const unsigned versions[] = {80, 81, 82, 83, 84, 85, 85, 86, 87, 88};
    return versions[minor > 9 ? 9 : minor];
  }
  return static_cast<unsigned>(90 + minor);
}

/** The fault of a kernel by what the interpreter says of it. */
int CodeOf(const char* fault) { return std::strstr(fault, "misaligned") != nullptr || std::strstr(fault, "aligned") != nullptr ? 716 : 700; }

}  // namespace

SIM_API cuModuleLoadDataEx(CUmodule* made, const void* image, unsigned count, int* options, void** values) {
  SIM_DEVICE("cuModuleLoadDataEx");
  char* log = nullptr;
  size_t logBytes = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) logBytes = reinterpret_cast<size_t>(values[i]);
  }
  char unread[4096];
  if (log == nullptr || logBytes == 0) {
    log = unread;
    logBytes = sizeof unread;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(sim::settings().compileMs));
  auto module = std::make_shared<sim::Module>();
  module->device = device;
  module->parsed = ptx_parse(static_cast<const char*>(image), log, logBytes);
  if (module->parsed == nullptr) return 218;
  if (ptx_version(module->parsed) > NewestPtx(sim::settings().driver)) {
    std::snprintf(log, logBytes, "Unsupported .version");
    return 222;
  }
  if (ptx_target(module->parsed) > static_cast<unsigned>(sim::settings().computeCapability)) {
    std::snprintf(log, logBytes, "SM version specified by .target is higher than the device's");
    return 218;
  }
  *made = reinterpret_cast<CUmodule>(module.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().modules[module.get()] = module;
  return 0;
}

SIM_API cuModuleUnload(CUmodule handle) {
  SIM_CALL("cuModuleUnload");
  auto module = Find(handles().modules, handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().modules.erase(handle);
  for (auto at = handles().functions.begin(); at != handles().functions.end();)
    at = at->second->module == module ? handles().functions.erase(at) : std::next(at);
  return 0;
}

SIM_API cuModuleGetFunction(CUfunction* made, CUmodule handle, const char* name) {
  SIM_DEVICE("cuModuleGetFunction");
  auto module = Find(handles().modules, handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto function = std::make_shared<sim::Function>();
  function->module = module;
  function->entry = ptx_find(module->parsed, name);
  if (function->entry == nullptr) return 500;
  *made = reinterpret_cast<CUfunction>(function.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().functions[function.get()] = function;
  return 0;
}

SIM_API cuFuncGetAttribute(int* value, int attribute, CUfunction handle) {
  SIM_DEVICE("cuFuncGetAttribute");
  auto function = Find(handles().functions, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const unsigned threads = ptx_max_threads(function->entry);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = threads == 0 ? 1024 : static_cast<int>(threads); return 0;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(ptx_shared_bytes(function->entry)); return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; return 0;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 0; return 0;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  SIM_DEVICE("cuFuncSetAttribute");
  auto function = Find(handles().functions, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<uint64_t>(value) + ptx_shared_bytes(function->entry) > sim::settings().sharedOptIn)
    return CUDA_ERROR_INVALID_VALUE;
  function->dynamicShared = static_cast<size_t>(value);
  return 0;
}

namespace sim {

CUresult MakeLaunch(const CUkernelNodeParams& p, Launch* launch) {
  auto function = Find(handles().functions, p.func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ptx_entry* entry = function->entry;
  const uint64_t threads = uint64_t{p.blockDimX} * p.blockDimY * p.blockDimZ;
  const unsigned most = ptx_max_threads(entry);
  if (p.gridDimX == 0 || p.gridDimY == 0 || p.gridDimZ == 0 || threads == 0 || p.gridDimX > 2147483647u || p.gridDimY > 65535 ||
      p.gridDimZ > 65535 || p.blockDimZ > 64)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > 1024 || (most > 0 && threads > most)) return CUDA_ERROR_INVALID_VALUE;
  if (p.sharedMemBytes > function->dynamicShared || p.sharedMemBytes + ptx_shared_bytes(entry) > settings().sharedOptIn)
    return CUDA_ERROR_INVALID_VALUE;
  if (p.kernelParams != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* block = nullptr;
  size_t bytes = 0;
  for (size_t i = 0; p.extra != nullptr && p.extra[i] != LaunchParamEnd(); i += 2) {
    if (p.extra[i] == LaunchParamPointer()) block = static_cast<const char*>(p.extra[i + 1]);
    else if (p.extra[i] == LaunchParamSize()) bytes = *static_cast<size_t*>(p.extra[i + 1]);
    else return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes < ptx_parameter_bytes(entry) || (bytes > 0 && block == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  *launch = {function,
             {p.gridDimX, p.gridDimY, p.gridDimZ},
             {p.blockDimX, p.blockDimY, p.blockDimZ},
             p.sharedMemBytes,
             std::vector<char>(block, block + bytes)};
  return 0;
}

void RunLaunch(const Launch& launch, Stream& stream) {
  // Decided now: the environment is read on the caller's thread.
  const CUresult fault = Planned("kernel");
  stream.Add([launch, fault, device = stream.device] {
    if (fault != 0) return fault;
    const auto ranges = device->Ranges();
    const ptx_memory memory = {ranges->data(), ranges->size(), settings().races ? 1 : 0, nullptr};
    char text[1024] = "";
    if (ptx_run(launch.function->entry, launch.grid, launch.group, launch.shared, launch.parameters.data(), &memory, text,
                sizeof text) == 0)
      return 0;
    // The driver says no more than a number: people who test want to know.
    std::fprintf(stderr, "cuda-sim: %s\n", text);
    return CodeOf(text);
  });
}

}  // namespace sim

SIM_API cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, CUstream order, void** parameters, void** extra) {
  SIM_DEVICE("cuLaunchKernel");
  auto stream = Find(handles().streams, order);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  sim::Launch launch;
  if (const CUresult code = sim::MakeLaunch({handle, gx, gy, gz, bx, by, bz, shared, parameters, extra}, &launch)) return code;
  sim::RunLaunch(launch, *stream);
  return 0;
}
