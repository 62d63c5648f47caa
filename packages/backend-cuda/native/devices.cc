/** Devices as plain objects for JavaScript. */
#include "devices.h"

#include <mutex>
#include <string>

#include "cu.h"

namespace {

std::mutex listing;

double Attribute(CUdevice device, int what) {
  int value = 0;
  return cu.DeviceGetAttribute(&value, what, device) == CUDA_SUCCESS ? value : 0;
}

std::string UuidOf(CUdevice device) {
  CUuuid uuid;
  if (cu.DeviceGetUuid(&uuid, device) != CUDA_SUCCESS) return "";
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

Napi::Object Describe(Napi::Env env, CUdevice device) {
  Napi::Object o = Napi::Object::New(env);
  char name[256] = "";
  cu.DeviceGetName(name, sizeof name, device);
  name[sizeof name - 1] = '\0';
  size_t bytes = 0;
  cu.DeviceTotalMem(&bytes, device);
  o.Set("name", static_cast<const char*>(name));
  o.Set("uuid", UuidOf(device));
  o.Set("memoryBytes", static_cast<double>(bytes));
  o.Set("major", Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  o.Set("minor", Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  o.Set("multiprocessors", Attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  o.Set("warp", Attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  o.Set("maxGroup", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  o.Set("maxGridX", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
  o.Set("maxGridY", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
  o.Set("maxGridZ", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z));
  o.Set("sharedBytes", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  o.Set("sharedOptInBytes", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  o.Set("integrated", Attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED));
  o.Set("computeMode", Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE));
  o.Set("memoryPools", Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
  return o;
}

}  // namespace

int DriverVersion() {
  int version = 0;
  Check(cu.DriverGetVersion(&version), "cuDriverGetVersion");
  return version;
}

Napi::Value ListDevices(Napi::Env env) {
  const std::lock_guard<std::mutex> lock(listing);
  Check(cu.Init(0), "cuInit");
  int count = 0;
  Check(cu.DeviceGetCount(&count), "cuDeviceGetCount");
  Napi::Array list = Napi::Array::New(env);
  for (int i = 0; i < count; i++) {
    CUdevice device = 0;
    Check(cu.DeviceGet(&device, i), "cuDeviceGet");
    list.Set(static_cast<uint32_t>(i), Describe(env, device));
  }
  return list;
}
