/**
 * The part of CUDA's driver API this addon uses, declared here so that no toolkit is needed, and the table of its functions, which
 * library.cc fills at run time. Names and values are those of NVIDIA's cuda.h, of CUDA 11.4 and newer.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "native-error.h"

#if defined(_WIN32)
#define CU_CALL __stdcall
#else
#define CU_CALL
#endif

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

/** CUDA_KERNEL_NODE_PARAMS of the functions without _v2, which every driver has. */
struct CUkernelNodeParams {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};

struct CUuuid {
  char bytes[16];
};

struct CUmemPoolProps {
  int allocType;
  int handleTypes;
  int locationType;
  int locationId;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

constexpr CUresult CUDA_SUCCESS = 0;
constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
constexpr CUresult CUDA_ERROR_NOT_READY = 600;
constexpr CUresult CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701;
constexpr CUresult CUDA_ERROR_NOT_SUPPORTED = 801;

constexpr int CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1;
constexpr int CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5;
constexpr int CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6;
constexpr int CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7;
constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8;
constexpr int CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10;
constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
constexpr int CU_DEVICE_ATTRIBUTE_INTEGRATED = 18;
constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20;
constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
constexpr int CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115;

constexpr int CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0;
constexpr int CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;
constexpr int CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3;
constexpr int CU_FUNC_ATTRIBUTE_NUM_REGS = 4;
constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;

constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
constexpr unsigned CU_EVENT_DEFAULT = 0;
constexpr unsigned CU_EVENT_BLOCKING_SYNC = 1;
constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;

constexpr int CU_JIT_INFO_LOG_BUFFER = 3;
constexpr int CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4;
constexpr int CU_JIT_ERROR_LOG_BUFFER = 5;
constexpr int CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6;

constexpr int CU_MEM_ALLOCATION_TYPE_PINNED = 1;
constexpr int CU_MEM_HANDLE_TYPE_NONE = 0;
constexpr int CU_MEM_LOCATION_TYPE_DEVICE = 1;
constexpr int CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;
constexpr int CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5;

/** Members of `extra` of cuLaunchKernel. */
inline void* LaunchParamEnd() { return nullptr; }
inline void* LaunchParamPointer() { return reinterpret_cast<void*>(1); }
inline void* LaunchParamSize() { return reinterpret_cast<void*>(2); }

/** Every function in use: name here, symbol in the library, arguments. All give a CUresult. */
#define CU_FUNCTIONS(X)                                                                                                    \
  X(Init, cuInit, (unsigned))                                                                                              \
  X(DriverGetVersion, cuDriverGetVersion, (int*))                                                                          \
  X(GetErrorName, cuGetErrorName, (CUresult, const char**))                                                                \
  X(GetErrorString, cuGetErrorString, (CUresult, const char**))                                                            \
  X(DeviceGetCount, cuDeviceGetCount, (int*))                                                                              \
  X(DeviceGet, cuDeviceGet, (CUdevice*, int))                                                                              \
  X(DeviceGetName, cuDeviceGetName, (char*, int, CUdevice))                                                                \
  X(DeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid*, CUdevice))                                                                \
  X(DeviceGetAttribute, cuDeviceGetAttribute, (int*, int, CUdevice))                                                       \
  X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t*, CUdevice))                                                              \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                                              \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                     \
  X(CtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                                           \
  X(MemGetInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                                                       \
  X(MemAlloc, cuMemAlloc_v2, (CUdeviceptr*, size_t))                                                                       \
  X(MemFree, cuMemFree_v2, (CUdeviceptr))                                                                                  \
  X(MemPoolCreate, cuMemPoolCreate, (CUmemoryPool*, const CUmemPoolProps*))                                                \
  X(MemPoolDestroy, cuMemPoolDestroy, (CUmemoryPool))                                                                      \
  X(MemPoolSetAttribute, cuMemPoolSetAttribute, (CUmemoryPool, int, void*))                                                \
  X(MemPoolGetAttribute, cuMemPoolGetAttribute, (CUmemoryPool, int, void*))                                                \
  X(MemPoolTrimTo, cuMemPoolTrimTo, (CUmemoryPool, size_t))                                                                \
  X(MemAllocFromPoolAsync, cuMemAllocFromPoolAsync, (CUdeviceptr*, size_t, CUmemoryPool, CUstream))                        \
  X(MemFreeAsync, cuMemFreeAsync, (CUdeviceptr, CUstream))                                                                 \
  X(MemHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                                                              \
  X(MemFreeHost, cuMemFreeHost, (void*))                                                                                   \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, size_t, CUstream))                                   \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, size_t, CUstream))                                         \
  X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                   \
  X(MemsetD32Async, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                                           \
  X(StreamCreate, cuStreamCreate, (CUstream*, unsigned))                                                                   \
  X(StreamDestroy, cuStreamDestroy_v2, (CUstream))                                                                         \
  X(StreamSynchronize, cuStreamSynchronize, (CUstream))                                                                    \
  X(StreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                                     \
  X(EventCreate, cuEventCreate, (CUevent*, unsigned))                                                                      \
  X(EventDestroy, cuEventDestroy_v2, (CUevent))                                                                            \
  X(EventRecord, cuEventRecord, (CUevent, CUstream))                                                                       \
  X(EventQuery, cuEventQuery, (CUevent))                                                                                   \
  X(EventSynchronize, cuEventSynchronize, (CUevent))                                                                       \
  X(EventElapsedTime, cuEventElapsedTime, (float*, CUevent, CUevent))                                                      \
  X(ModuleLoadDataEx, cuModuleLoadDataEx, (CUmodule*, const void*, unsigned, int*, void**))                                \
  X(ModuleUnload, cuModuleUnload, (CUmodule))                                                                              \
  X(ModuleGetFunction, cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                                          \
  X(FuncGetAttribute, cuFuncGetAttribute, (int*, int, CUfunction))                                                         \
  X(FuncSetAttribute, cuFuncSetAttribute, (CUfunction, int, int))                                                          \
  X(LaunchKernel, cuLaunchKernel,                                                                                          \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**))

/** Those the engine works without: all are there, or none is used. */
#define CU_GRAPH_FUNCTIONS(X)                                                                                              \
  X(GraphCreate, cuGraphCreate, (CUgraph*, unsigned))                                                                      \
  X(GraphDestroy, cuGraphDestroy, (CUgraph))                                                                               \
  X(GraphAddKernelNode, cuGraphAddKernelNode,                                                                              \
    (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUkernelNodeParams*))                                        \
  X(GraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long))                            \
  X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, (CUgraphExec, CUgraphNode, const CUkernelNodeParams*))   \
  X(GraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                                                   \
  X(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))

/** The functions of the loaded library. Filled once per process; read only after that. */
struct CuTable {
#define CU_MEMBER(name, symbol, arguments) CUresult(CU_CALL* name) arguments = nullptr;
  CU_FUNCTIONS(CU_MEMBER)
  CU_GRAPH_FUNCTIONS(CU_MEMBER)
#undef CU_MEMBER
};
extern CuTable cu;

/** Opens the driver's library (or the one at `path`); returns an empty string, or why it could not. Thread-safe. */
std::string OpenLibrary(const std::string& path);
bool IsOpen();
/** True where the driver has graphs. */
bool HasGraphs();
/** The path it was opened by, empty for the system's. */
const std::string& LibraryPath();
/** True for the simulated driver of tests. */
bool IsSimulated();

inline void Check(CUresult code, const char* call) {
  if (code != CUDA_SUCCESS) throw NativeError{code, call};
}
