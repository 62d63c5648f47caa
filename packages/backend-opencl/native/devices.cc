/** Platforms and devices, as plain objects for JavaScript. */
#include "devices.h"

#include <mutex>
#include <vector>

namespace {

/** Drivers make their devices when they are first asked for them; PoCL does so without a lock, and crashes when two threads ask. */
std::mutex listing;

template <typename Handle, typename Function>
std::string Text(Function info, Handle handle, cl_uint what) {
  size_t bytes = 0;
  if (info(handle, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (info(handle, what, bytes, &text[0], nullptr) != CL_SUCCESS) return "";
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

template <typename T>
double Number(cl_device_id device, cl_uint what) {
  T value = 0;
  return cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? static_cast<double>(value) : 0;
}

Napi::Object Describe(Napi::Env env, cl_device_id device) {
  Napi::Object o = Napi::Object::New(env);
  o.Set("name", Text(cl.GetDeviceInfo, device, CL_DEVICE_NAME));
  o.Set("vendor", Text(cl.GetDeviceInfo, device, CL_DEVICE_VENDOR));
  o.Set("version", Text(cl.GetDeviceInfo, device, CL_DEVICE_VERSION));
  o.Set("driver", Text(cl.GetDeviceInfo, device, CL_DRIVER_VERSION));
  o.Set("language", Text(cl.GetDeviceInfo, device, CL_DEVICE_OPENCL_C_VERSION));
  o.Set("extensions", Text(cl.GetDeviceInfo, device, CL_DEVICE_EXTENSIONS));
  o.Set("typeBits", Number<cl_bitfield>(device, CL_DEVICE_TYPE));
  o.Set("computeUnits", Number<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
  o.Set("maxGroup", Number<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  o.Set("maxAllocBytes", Number<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  o.Set("maxParameterBytes", Number<size_t>(device, CL_DEVICE_MAX_PARAMETER_SIZE));
  o.Set("baseAlignBits", Number<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN));
  o.Set("globalBytes", Number<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE));
  o.Set("localBytes", Number<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE));
  o.Set("localType", Number<cl_uint>(device, CL_DEVICE_LOCAL_MEM_TYPE));
  o.Set("floatLanes", Number<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
  o.Set("floatConfig", Number<cl_bitfield>(device, CL_DEVICE_SINGLE_FP_CONFIG));
  o.Set("littleEndian", Number<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE));
  o.Set("available", Number<cl_bool>(device, CL_DEVICE_AVAILABLE));
  o.Set("compiler", Number<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE));
  o.Set("unifiedMemory", Number<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY));
  return o;
}

std::vector<cl_platform_id> Platforms() {
  cl_uint count = 0;
  const cl_int code = cl.GetPlatformIDs(0, nullptr, &count);
  if (code == CL_PLATFORM_NOT_FOUND_KHR || count == 0) return {};
  Check(code, "clGetPlatformIDs");
  std::vector<cl_platform_id> ids(count);
  Check(cl.GetPlatformIDs(count, ids.data(), nullptr), "clGetPlatformIDs");
  return ids;
}

std::vector<cl_device_id> DevicesOf(cl_platform_id platform) {
  cl_uint count = 0;
  const cl_int code = cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (code != CL_SUCCESS || count == 0) return {};
  std::vector<cl_device_id> ids(count);
  Check(cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs");
  return ids;
}

}  // namespace

Napi::Value ListDevices(Napi::Env env) {
  const std::lock_guard<std::mutex> lock(listing);
  Napi::Array list = Napi::Array::New(env);
  uint32_t index = 0;
  for (cl_platform_id platform : Platforms()) {
    for (cl_device_id device : DevicesOf(platform)) {
      Napi::Object o = Describe(env, device);
      o.Set("platform", Text(cl.GetPlatformInfo, platform, CL_PLATFORM_NAME));
      o.Set("platformVersion", Text(cl.GetPlatformInfo, platform, CL_PLATFORM_VERSION));
      list.Set(index++, o);
    }
  }
  return list;
}

DeviceChoice FindDevice(uint32_t index) {
  const std::lock_guard<std::mutex> lock(listing);
  for (cl_platform_id platform : Platforms()) {
    for (cl_device_id device : DevicesOf(platform)) {
      if (index-- == 0) return {platform, device};
    }
  }
  throw ClError{CL_DEVICE_NOT_FOUND, "clGetDeviceIDs"};
}
