/**
 * The addon @polygrad/backend-cuda: `open(path)` finds NVIDIA's driver, `devices()` lists its cards, `Driver` is one engine's part of a
 * card. Nothing here belongs to a thread of Node but Drivers, so many threads may load it.
 */
#include "engine.h"
#include "libraries/cublaslt.h"
#include "libraries/cudnn.h"
#include "devices.h"
#include "guarded.h"

namespace {

/** Opens the library once per process; returns an empty string, or why it could not. */
Napi::Value Open(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::String::New(info.Env(), OpenLibrary(path)); });
}

/** The same for cuBLASLt, which needs a path or a name. */
Napi::Value OpenProducts(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::String::New(info.Env(), OpenCublasLt(path)); });
}

/** The same for cuDNN. */
Napi::Value OpenConvolutions(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::String::New(info.Env(), OpenCudnn(path)); });
}

/** The path of the library that is open, empty for the system's. */
Napi::Value Opened(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return Napi::String::New(info.Env(), LibraryPath()); });
}

Napi::Value Simulated(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), IsSimulated()); }

void NeedLibrary(Napi::Env env) {
  if (!IsOpen()) throw Napi::Error::New(env, "open() comes first");
}

Napi::Value Version(const Napi::CallbackInfo& info) {
  NeedLibrary(info.Env());
  return Guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), DriverVersion()); });
}

Napi::Value Devices(const Napi::CallbackInfo& info) {
  NeedLibrary(info.Env());
  return Guarded(info.Env(), [&] { return ListDevices(info.Env()); });
}

/** What the driver says an error code means: its name and a sentence. */
Napi::Value ErrorText(const Napi::CallbackInfo& info) {
  NeedLibrary(info.Env());
  return Guarded(info.Env(), [&] {
    const int code = static_cast<int>(Whole(Number(info, 0), "errorText", "the code", 1 << 20));
    const char *name = nullptr, *text = nullptr;
    if (cu.GetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = "";
    if (cu.GetErrorString(code, &text) != CUDA_SUCCESS || text == nullptr) text = "";
    return Napi::String::New(info.Env(), std::string(name) + (*text == '\0' ? "" : std::string(": ") + text));
  });
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("open", Napi::Function::New(env, Open, "open"));
  exports.Set("openCublasLt", Napi::Function::New(env, OpenProducts, "openCublasLt"));
  exports.Set("openCudnn", Napi::Function::New(env, OpenConvolutions, "openCudnn"));
  exports.Set("opened", Napi::Function::New(env, Opened, "opened"));
  exports.Set("simulated", Napi::Function::New(env, Simulated, "simulated"));
  exports.Set("version", Napi::Function::New(env, Version, "version"));
  exports.Set("devices", Napi::Function::New(env, Devices, "devices"));
  exports.Set("errorText", Napi::Function::New(env, ErrorText, "errorText"));
  exports.Set("Driver", Engine::Define(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(cuda, Init)
