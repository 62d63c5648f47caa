/** Devices and contexts. */
#include <cstdio>
#include <cstring>

#include "sim.h"

using sim::DeviceOf;
using sim::settings;

/** By this name the engine knows that no card is behind it. */
SIM_API polygradSimulated() { return 1; }

SIM_API cuInit(unsigned flags) {
  if (const CUresult planned = sim::Planned("cuInit")) return planned;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (settings().devices == 0) return CUDA_ERROR_NO_DEVICE;
  sim::started = true;
  return 0;
}

SIM_API cuDriverGetVersion(int* version) {
  if (const CUresult planned = sim::Planned("cuDriverGetVersion")) return planned;
  *version = settings().driver;
  return 0;
}

namespace {

struct Named {
  int code;
  const char* name;
  const char* text;
};
const Named names[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Named* NameOf(CUresult code) {
  for (const Named& n : names)
    if (n.code == code) return &n;
  return nullptr;
}

}  // namespace

SIM_API cuGetErrorName(CUresult code, const char** text) {
  const Named* found = NameOf(code);
  *text = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : 0;
}

SIM_API cuGetErrorString(CUresult code, const char** text) {
  const Named* found = NameOf(code);
  *text = found == nullptr ? nullptr : found->text;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : 0;
}

SIM_API cuDeviceGetCount(int* count) {
  SIM_CALL("cuDeviceGetCount");
  *count = settings().devices;
  return 0;
}

SIM_API cuDeviceGet(CUdevice* device, int index) {
  SIM_CALL("cuDeviceGet");
  if (DeviceOf(index) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = index;
  return 0;
}

SIM_API cuDeviceGetName(char* name, int bytes, CUdevice device) {
  SIM_CALL("cuDeviceGetName");
  if (DeviceOf(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(bytes), "%s", settings().name.c_str());
  return 0;
}

SIM_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  SIM_CALL("cuDeviceGetUuid");
  if (DeviceOf(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  for (int i = 0; i < 16; i++) uuid->bytes[i] = static_cast<char>(0x50 + i);
  uuid->bytes[15] = static_cast<char>(device);
  return 0;
}

SIM_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  SIM_CALL("cuDeviceTotalMem");
  if (DeviceOf(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = settings().memory;
  return 0;
}

SIM_API cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  SIM_CALL("cuDeviceGetAttribute");
  if (DeviceOf(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: *value = 65535; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 * 1024; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = static_cast<int>(settings().sharedOptIn); return 0;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; return 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 2; return 0;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = 0; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: *value = settings().computeMode; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = settings().computeCapability / 10; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = settings().computeCapability % 10; return 0;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = settings().pools ? 1 : 0; return 0;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice index) {
  SIM_CALL("cuDevicePrimaryCtxRetain");
  sim::Device* device = DeviceOf(index);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (const int fault = device->fault) return fault;
  const std::lock_guard<std::mutex> lock(device->guard);
  device->users++;
  *context = reinterpret_cast<CUcontext>(device);
  return 0;
}

SIM_API cuDevicePrimaryCtxRelease_v2(CUdevice index) {
  SIM_CALL("cuDevicePrimaryCtxRelease");
  sim::Device* device = DeviceOf(index);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard<std::mutex> lock(device->guard);
  if (device->users == 0) return 201;
  device->users--;
  return 0;
}

SIM_API cuCtxSetCurrent(CUcontext context) {
  SIM_CALL("cuCtxSetCurrent");
  auto* device = reinterpret_cast<sim::Device*>(context);
  if (device != nullptr && (DeviceOf(device->index) != device || device->users == 0)) return 201;
  sim::SetCurrent(device);
  return 0;
}
