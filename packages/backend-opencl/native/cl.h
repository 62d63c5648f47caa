/**
 * The part of OpenCL 1.2 this addon uses, declared here so that no SDK is needed, and the table of its functions, which
 * library.cc fills at run time. Names and values are those of the OpenCL specification.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "native-error.h"

#if defined(_WIN32)
#define CL_CALL __stdcall
#else
#define CL_CALL
#endif

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_platform_id = struct _cl_platform_id*;
using cl_device_id = struct _cl_device_id*;
using cl_context = struct _cl_context*;
using cl_command_queue = struct _cl_command_queue*;
using cl_mem = struct _cl_mem*;
using cl_program = struct _cl_program*;
using cl_kernel = struct _cl_kernel*;
using cl_event = struct _cl_event*;

constexpr cl_int CL_SUCCESS = 0;
constexpr cl_int CL_COMPLETE = 0;
constexpr cl_int CL_DEVICE_NOT_FOUND = -1;
constexpr cl_int CL_OUT_OF_RESOURCES = -5;
constexpr cl_int CL_OUT_OF_HOST_MEMORY = -6;
constexpr cl_int CL_INVALID_VALUE = -30;
constexpr cl_int CL_INVALID_MEM_OBJECT = -38;
constexpr cl_int CL_PLATFORM_NOT_FOUND_KHR = -1001;
constexpr cl_bool CL_FALSE = 0;
constexpr cl_bool CL_TRUE = 1;

constexpr cl_uint CL_PLATFORM_VERSION = 0x0901;
constexpr cl_uint CL_PLATFORM_NAME = 0x0902;
constexpr cl_uint CL_PLATFORM_VENDOR = 0x0903;
constexpr cl_bitfield CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;
constexpr cl_uint CL_DEVICE_TYPE = 0x1000;
constexpr cl_uint CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002;
constexpr cl_uint CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004;
constexpr cl_uint CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005;
constexpr cl_uint CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010;
constexpr cl_uint CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017;
constexpr cl_uint CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019;
constexpr cl_uint CL_DEVICE_SINGLE_FP_CONFIG = 0x101B;
constexpr cl_uint CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F;
constexpr cl_uint CL_DEVICE_LOCAL_MEM_TYPE = 0x1022;
constexpr cl_uint CL_DEVICE_LOCAL_MEM_SIZE = 0x1023;
constexpr cl_uint CL_DEVICE_ENDIAN_LITTLE = 0x1026;
constexpr cl_uint CL_DEVICE_AVAILABLE = 0x1027;
constexpr cl_uint CL_DEVICE_COMPILER_AVAILABLE = 0x1028;
constexpr cl_uint CL_DEVICE_NAME = 0x102B;
constexpr cl_uint CL_DEVICE_VENDOR = 0x102C;
constexpr cl_uint CL_DRIVER_VERSION = 0x102D;
constexpr cl_uint CL_DEVICE_VERSION = 0x102F;
constexpr cl_uint CL_DEVICE_EXTENSIONS = 0x1030;
constexpr cl_uint CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035;
constexpr cl_uint CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A;
constexpr cl_uint CL_DEVICE_OPENCL_C_VERSION = 0x103D;

constexpr cl_bitfield CL_MEM_READ_WRITE = 1 << 0;
constexpr cl_bitfield CL_MEM_ALLOC_HOST_PTR = 1 << 4;
constexpr cl_bitfield CL_MAP_READ = 1 << 0;
constexpr cl_bitfield CL_MAP_WRITE_INVALIDATE_REGION = 1 << 2;
constexpr cl_uint CL_PROGRAM_BINARY_SIZES = 0x1165;
constexpr cl_uint CL_PROGRAM_BINARIES = 0x1166;
constexpr cl_uint CL_PROGRAM_BUILD_LOG = 0x1183;
constexpr cl_uint CL_KERNEL_NUM_ARGS = 0x1191;
constexpr cl_uint CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196;
constexpr cl_uint CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119B;
constexpr cl_uint CL_KERNEL_ARG_ADDRESS_CONSTANT = 0x119D;
constexpr cl_uint CL_KERNEL_ARG_ADDRESS_PRIVATE = 0x119E;
constexpr cl_uint CL_KERNEL_WORK_GROUP_SIZE = 0x11B0;
constexpr cl_uint CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3;
constexpr cl_bitfield CL_QUEUE_PROFILING_ENABLE = 1 << 1;
constexpr cl_uint CL_PROFILING_COMMAND_START = 0x1282;
constexpr cl_uint CL_PROFILING_COMMAND_END = 0x1283;

using Callback = void(CL_CALL*)(cl_event, cl_int, void*);
using ContextCallback = void(CL_CALL*)(const char*, const void*, size_t, void*);
using ProgramCallback = void(CL_CALL*)(cl_program, void*);

/** Every function in use: return type, name, arguments. */
#define CL_FUNCTIONS(X)                                                                                                  \
  X(cl_int, GetPlatformIDs, (cl_uint, cl_platform_id*, cl_uint*))                                                        \
  X(cl_int, GetPlatformInfo, (cl_platform_id, cl_uint, size_t, void*, size_t*))                                          \
  X(cl_int, GetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*))                               \
  X(cl_int, GetDeviceInfo, (cl_device_id, cl_uint, size_t, void*, size_t*))                                              \
  X(cl_context, CreateContext, (const intptr_t*, cl_uint, const cl_device_id*, ContextCallback, void*, cl_int*))         \
  X(cl_int, ReleaseContext, (cl_context))                                                                                \
  X(cl_command_queue, CreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int*))                              \
  X(cl_int, ReleaseCommandQueue, (cl_command_queue))                                                                     \
  X(cl_mem, CreateBuffer, (cl_context, cl_bitfield, size_t, void*, cl_int*))                                             \
  X(cl_int, ReleaseMemObject, (cl_mem))                                                                                  \
  X(cl_program, CreateProgramWithSource, (cl_context, cl_uint, const char**, const size_t*, cl_int*))                    \
  X(cl_program, CreateProgramWithBinary,                                                                                 \
    (cl_context, cl_uint, const cl_device_id*, const size_t*, const unsigned char**, cl_int*, cl_int*))                  \
  X(cl_int, BuildProgram, (cl_program, cl_uint, const cl_device_id*, const char*, ProgramCallback, void*))               \
  X(cl_int, GetProgramInfo, (cl_program, cl_uint, size_t, void*, size_t*))                                               \
  X(cl_int, GetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void*, size_t*))                            \
  X(cl_int, ReleaseProgram, (cl_program))                                                                                \
  X(cl_kernel, CreateKernel, (cl_program, const char*, cl_int*))                                                         \
  X(cl_int, GetKernelInfo, (cl_kernel, cl_uint, size_t, void*, size_t*))                                                 \
  X(cl_int, GetKernelArgInfo, (cl_kernel, cl_uint, cl_uint, size_t, void*, size_t*))                                     \
  X(cl_int, GetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_uint, size_t, void*, size_t*))                          \
  X(cl_int, SetKernelArg, (cl_kernel, cl_uint, size_t, const void*))                                                     \
  X(cl_int, ReleaseKernel, (cl_kernel))                                                                                  \
  X(cl_int, EnqueueNDRangeKernel,                                                                                        \
    (cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const cl_event*,        \
     cl_event*))                                                                                                         \
  X(cl_int, EnqueueReadBuffer,                                                                                           \
    (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint, const cl_event*, cl_event*))                     \
  X(cl_int, EnqueueWriteBuffer,                                                                                          \
    (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, cl_uint, const cl_event*, cl_event*))               \
  X(cl_int, EnqueueCopyBuffer,                                                                                           \
    (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event*, cl_event*))                     \
  X(cl_int, EnqueueFillBuffer,                                                                                           \
    (cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint, const cl_event*, cl_event*))                \
  X(void*, EnqueueMapBuffer,                                                                                             \
    (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t, cl_uint, const cl_event*, cl_event*, cl_int*))      \
  X(cl_int, EnqueueUnmapMemObject, (cl_command_queue, cl_mem, void*, cl_uint, const cl_event*, cl_event*))               \
  X(cl_int, EnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event*, cl_event*))                          \
  X(cl_int, WaitForEvents, (cl_uint, const cl_event*))                                                                   \
  X(cl_int, GetEventInfo, (cl_event, cl_uint, size_t, void*, size_t*))                                                   \
  X(cl_int, GetEventProfilingInfo, (cl_event, cl_uint, size_t, void*, size_t*))                                          \
  X(cl_int, SetEventCallback, (cl_event, cl_int, Callback, void*))                                                       \
  X(cl_int, RetainEvent, (cl_event))                                                                                     \
  X(cl_int, ReleaseEvent, (cl_event))                                                                                    \
  X(cl_int, Flush, (cl_command_queue))                                                                                   \
  X(cl_int, Finish, (cl_command_queue))

/** The functions of the loaded library. Filled once per process; read only after that. */
struct ClTable {
#define CL_MEMBER(result, name, arguments) result(CL_CALL* name) arguments = nullptr;
  CL_FUNCTIONS(CL_MEMBER)
#undef CL_MEMBER
};
extern ClTable cl;

/** Opens the ICD loader (or the library at `path`); returns an empty string, or why it could not. Thread-safe. */
std::string OpenLibrary(const std::string& path);
bool IsOpen();

using ClError = NativeError;

inline void Check(cl_int code, const char* call) {
  if (code != CL_SUCCESS) throw ClError{code, call};
}

struct DeviceChoice {
  cl_platform_id platform;
  cl_device_id device;
};
