#include "engine.h"

#include <cstdlib>

#include "guarded.h"

namespace {

constexpr const char* kGone =
    "[opencl.download] the array was transferred away or made shorter before what is read arrived; leave it alone until then";

/** Waits for an event and releases it; what became of it. */
int WaitFor(cl_event event) {
  cl_int code = cl.WaitForEvents(1, &event);
  cl_int status = CL_COMPLETE;
  if (cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS && status < 0)
    code = status;
  cl.ReleaseEvent(event);
  return code;
}

/** The path of a lock; an argument left out is none. */
std::string PathOf(const Napi::Value& value) { return value.IsString() ? value.As<Napi::String>().Utf8Value() : std::string(); }

}  // namespace

Napi::Function Engine::Define(Napi::Env env) {
  return DefineClass(env, "Driver",
                     {InstanceMethod("alloc", &Engine::Alloc), InstanceMethod("free", &Engine::Free),
                      InstanceMethod("upload", &Engine::Upload), InstanceMethod("readSync", &Engine::ReadSync),
                      InstanceMethod("read", &Engine::Read), InstanceMethod("idle", &Engine::Idle),
                      InstanceMethod("build", &Engine::Build), InstanceMethod("built", &Engine::Built),
                      InstanceMethod("finish", &Engine::Finish), InstanceMethod("load", &Engine::Load),
                      InstanceMethod("binary", &Engine::Binary), InstanceMethod("releaseProgram", &Engine::ReleaseProgram),
                      InstanceMethod("kernel", &Engine::MakeKernel), InstanceMethod("releaseKernel", &Engine::ReleaseKernel),
                      InstanceMethod("prepareProduct", &Engine::PrepareProduct), InstanceMethod("submit", &Engine::Submit), InstanceMethod("submitTimed", &Engine::SubmitTimed),
                      InstanceMethod("dispose", &Engine::Dispose)});
}

Engine::Engine(const Napi::CallbackInfo& info) : DriverClass(info) {
  const Napi::Env env = info.Env();
  if (!IsOpen()) throw Napi::Error::New(env, "open() comes first");
  const bool unified = info[1].As<Napi::Boolean>().Value();
  const bool beside = info[2].IsUndefined() || info[2].ToBoolean();
  std::unique_ptr<Driver> driver = Guarded(env, [&] {
    const size_t index = Whole(Number(info, 0), "Driver", "the device", 65535);
    return std::make_unique<Driver>(FindDevice(static_cast<uint32_t>(index)), unified, beside);
  });
  Start(env, std::move(driver), "polygrad opencl", kGone);
}

Napi::Value Engine::Read(const Napi::CallbackInfo& info) {
  const size_t bytes = View(info.Env(), info[2]).length;
  return Guarded(info.Env(), [&] {
    std::shared_ptr<void> held;
    if (bytes > 0) {
      held = std::shared_ptr<void>(std::malloc(bytes), std::free);
      if (held == nullptr) throw std::bad_alloc();
    }
    const cl_event event = Live().ReadLater(Number(info, 0), Number(info, 1), held.get(), bytes);
    return Await(info.Env(), [event] { return WaitFor(event); }, Arrival(info[2], bytes, held));
  });
}

Napi::Value Engine::Idle(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const cl_event event = Live().Marker();
    return Await(info.Env(), [event] { return WaitFor(event); }, Arrival());
  });
}

Napi::Value Engine::Build(const Napi::CallbackInfo& info) {
  std::string source = info[0].As<Napi::String>();
  std::string options = info[1].As<Napi::String>();
  const bool reload = info[2].ToBoolean();
  std::string lock = PathOf(info[3]);
  return Guarded(info.Env(), [&] {
    return Napi::Number::New(info.Env(), Live().Build(std::move(source), std::move(options), reload, std::move(lock)));
  });
}

/** Resolves when a program is compiled or refused; it says nothing about which. */
Napi::Value Engine::Built(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return WhenOver(info.Env(), Live().JobOf(Number(info, 0)), false); });
}

void Engine::Finish(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().Compiled(Number(info, 0)); });
}

Napi::Value Engine::Load(const Napi::CallbackInfo& info) {
  const Bytes binary = View(info.Env(), info[0]);
  const std::string options = info[1].As<Napi::String>();
  const std::string lock = PathOf(info[2]);
  return Guarded(info.Env(),
                 [&] { return Napi::Number::New(info.Env(), Live().Load(binary.data, binary.length, options, lock)); });
}

Napi::Value Engine::Binary(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<uint8_t> binary = Live().BinaryOf(Number(info, 0));
    return Napi::Buffer<uint8_t>::Copy(info.Env(), binary.data(), binary.size());
  });
}

void Engine::ReleaseProgram(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().ReleaseProgram(Number(info, 0)); });
}

/** Resolves when CLBlast is ready for such a product; rejects if it cannot compute it. */
Napi::Value Engine::PrepareProduct(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    return WhenOver(info.Env(), Live().PrepareProduct(cells.data(), cells.size(), PathOf(info[2])), true);
  });
}
