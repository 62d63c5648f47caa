/**
 * The addon @polygrad/backend-opencl: `open(path)` finds the OpenCL library, `devices()` lists what it offers, `Driver` is
 * one context and queue. Nothing here belongs to a thread of Node but Drivers, so many threads may load it.
 */
#include "clblast.h"
#include "engine.h"
#include "guarded.h"

namespace {

/** Opens the library once per process; returns an empty string, or why it could not. */
Napi::Value Open(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::String::New(info.Env(), OpenLibrary(path)); });
}

/** The same for CLBlast. */
Napi::Value OpenClblast(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::String::New(info.Env(), OpenBlast(path)); });
}

Napi::Value Devices(const Napi::CallbackInfo& info) {
  if (!IsOpen()) throw Napi::Error::New(info.Env(), "open() comes first");
  return Guarded(info.Env(), [&] { return ListDevices(info.Env()); });
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("open", Napi::Function::New(env, Open, "open"));
  exports.Set("openClblast", Napi::Function::New(env, OpenClblast, "openClblast"));
  exports.Set("devices", Napi::Function::New(env, Devices, "devices"));
  exports.Set("Driver", Engine::Define(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(opencl, Init)
