#include "engine.h"

#include "guarded.h"

namespace {

constexpr const char* kGone =
    "[cuda.download] the array was transferred away or made shorter before what is read arrived; leave it alone until then";

}  // namespace

Napi::Function Engine::Define(Napi::Env env) {
  return DefineClass(env, "Driver",
                     {InstanceMethod("alloc", &Engine::Alloc), InstanceMethod("free", &Engine::Free),
                      InstanceMethod("upload", &Engine::Upload), InstanceMethod("readSync", &Engine::ReadSync),
                      InstanceMethod("read", &Engine::Read), InstanceMethod("idle", &Engine::Idle),
                      InstanceMethod("build", &Engine::Build), InstanceMethod("built", &Engine::Built),
                      InstanceMethod("finish", &Engine::Finish), InstanceMethod("releaseModule", &Engine::ReleaseModule),
                      InstanceMethod("kernel", &Engine::MakeKernel), InstanceMethod("releaseKernel", &Engine::ReleaseKernel),
                      InstanceMethod("facts", &Engine::Facts), InstanceMethod("prepareProduct", &Engine::PrepareProduct),
                      InstanceMethod("submit", &Engine::Submit),
                      InstanceMethod("submitTimed", &Engine::SubmitTimed), InstanceMethod("graphFacts", &Engine::GraphFacts),
                      InstanceMethod("memoryInfo", &Engine::MemoryInfo),
                      InstanceMethod("trim", &Engine::Trim), InstanceMethod("dispose", &Engine::Dispose)});
}

Engine::Engine(const Napi::CallbackInfo& info) : DriverClass(info) {
  const Napi::Env env = info.Env();
  if (!IsOpen()) throw Napi::Error::New(env, "open() comes first");
  const bool beside = info[1].IsUndefined() || info[1].ToBoolean();
  const bool graphs = info[2].IsUndefined() || info[2].ToBoolean();
  const bool tf32 = !info[3].IsUndefined() && info[3].ToBoolean();
  std::unique_ptr<Driver> driver = Guarded(env, [&] {
    const size_t index = Whole(Number(info, 0), "Driver", "the device", 63);
    Check(cu.Init(0), "cuInit");
    return std::make_unique<Driver>(static_cast<int>(index), beside, graphs, tf32);
  });
  Start(env, std::move(driver), "polygrad cuda", kGone);
}

Napi::Value Engine::Read(const Napi::CallbackInfo& info) {
  const size_t bytes = View(info.Env(), info[2]).length;
  return Guarded(info.Env(), [&] {
    Reading reading = Live().ReadLater(Number(info, 0), Number(info, 1), bytes);
    if (reading.data == nullptr) return Await(info.Env(), Live().Everything(), Arrival());
    // Held by the pointer to its bytes.
    const std::shared_ptr<void> data(reading.data, reading.data->data);
    return Await(info.Env(), {reading.mark}, Arrival(info[2], bytes, data));
  });
}

Napi::Value Engine::Idle(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return Await(info.Env(), Live().Everything(), Arrival()); });
}

Napi::Value Engine::Await(Napi::Env env, std::vector<Mark> marks, Arrival arrival) {
  const std::shared_ptr<const Context> context = Live().context();
  return DriverClass::Await(env, [context, marks] { return Driver::WaitFor(*context, marks); }, std::move(arrival));
}

Napi::Value Engine::Build(const Napi::CallbackInfo& info) {
  std::string ptx = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), Live().Build(std::move(ptx))); });
}

/** Resolves when a module is compiled or refused; it says nothing about which. */
Napi::Value Engine::Built(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return WhenOver(info.Env(), Live().JobOf(Number(info, 0)), false); });
}

void Engine::Finish(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().Finish(Number(info, 0)); });
}

void Engine::ReleaseModule(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().ReleaseModule(Number(info, 0)); });
}

Napi::Value Engine::Facts(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return ArrayOf(info.Env(), Live().Facts(Number(info, 0))); });
}

/** Resolves when cuBLASLt, or cuDNN, is ready for such a product; rejects if it cannot compute it. */
Napi::Value Engine::PrepareProduct(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    return WhenOver(info.Env(), Live().PrepareProduct(cells.data(), cells.size()), true);
  });
}

Napi::Value Engine::GraphFacts(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return ArrayOf(info.Env(), Live().GraphFacts()); });
}

Napi::Value Engine::MemoryInfo(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return ArrayOf(info.Env(), Live().MemoryInfo()); });
}

void Engine::Trim(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] {
    Live().context()->Enter();
    Live().Trim();
  });
}
