#include "engine.h"

#include <algorithm>
#include <cstring>

#include "guarded.h"

namespace {

constexpr const char* kGone =
    "[cuda.download] the array was transferred away or made shorter before what is read arrived; leave it alone until then";

Napi::Float64Array ArrayOf(Napi::Env env, const std::vector<double>& numbers) {
  Napi::Float64Array array = Napi::Float64Array::New(env, numbers.size());
  std::copy(numbers.begin(), numbers.end(), array.Data());
  return array;
}

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

Engine::Engine(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Engine>(info) {
  const Napi::Env env = info.Env();
  if (!IsOpen()) throw Napi::Error::New(env, "open() comes first");
  const bool beside = info[1].IsUndefined() || info[1].ToBoolean();
  const bool graphs = info[2].IsUndefined() || info[2].ToBoolean();
  const bool tf32 = !info[3].IsUndefined() && info[3].ToBoolean();
  Guarded(env, [&] {
    const size_t index = Whole(Number(info, 0), "Driver", "the device", 63);
    Check(cu.Init(0), "cuInit");
    driver_ = std::make_unique<Driver>(static_cast<int>(index), beside, graphs, tf32);
  });
  promises_ = std::make_unique<Promises>(env, "polygrad cuda", kGone, [this](bool busy) {
    if (busy) Ref();
    else Unref();
  });
  waiter_ = std::make_unique<Waiter>([this](uint64_t number, int code) { promises_->Answer(number, code); });
  napi_add_env_cleanup_hook(env, OnCleanup, this);
}

/** A thread of Node ends, perhaps in the middle of a kernel: what runs is waited for, then everything goes. */
void Engine::OnCleanup(void* self) { static_cast<Engine*>(self)->Close(); }

void Engine::Close() {
  if (driver_ == nullptr) return;
  if (waiter_ != nullptr) {
    napi_remove_env_cleanup_hook(Env(), OnCleanup, this);
    waiter_->Stop();
    waiter_ = nullptr;
  }
  driver_->StopBuilding();
  if (promises_ != nullptr) promises_->Stop();
  driver_ = nullptr;
}

Driver& Engine::Live() {
  if (driver_ == nullptr) throw NativeError{kInvalidValue, "disposed"};
  return *driver_;
}

Napi::Value Engine::Alloc(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), Live().Alloc(Number(info, 0))); });
}

void Engine::Free(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().Free(Number(info, 0)); });
}

void Engine::Upload(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info.Env(), info[2]);
  Guarded(info.Env(), [&] { Live().Upload(Number(info, 0), Number(info, 1), bytes.data, bytes.length); });
}

void Engine::ReadSync(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info.Env(), info[2]);
  Guarded(info.Env(), [&] { Live().Read(Number(info, 0), Number(info, 1), bytes.data, bytes.length); });
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
  const uint64_t number = promises_->NextNumber();
  // Stays until the device has written, whatever is thrown.
  const std::shared_ptr<void> held = arrival.data;
  const std::shared_ptr<const Context> context = Live().context();
  try {
    const Napi::Value promise = promises_->Make(env, number, std::move(arrival));
    waiter_->Add([context, marks] { return Driver::WaitFor(*context, marks); }, number);
    return promise;
  } catch (...) {
    Driver::WaitFor(*context, marks);
    throw;
  }
}

Napi::Value Engine::Build(const Napi::CallbackInfo& info) {
  std::string ptx = info[0].As<Napi::String>();
  return Guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), Live().Build(std::move(ptx))); });
}

/** Resolves when a module is compiled or refused; it says nothing about which. */
Napi::Value Engine::Built(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::shared_ptr<Job> job = Live().JobOf(Number(info, 0));
    const uint64_t number = promises_->NextNumber();
    const Napi::Value promise = promises_->Make(info.Env(), number, Arrival());
    job->Then([this, number] { promises_->Answer(number, CUDA_SUCCESS); });
    return promise;
  });
}

void Engine::Finish(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().Finish(Number(info, 0)); });
}

void Engine::ReleaseModule(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().ReleaseModule(Number(info, 0)); });
}

Napi::Value Engine::MakeKernel(const Napi::CallbackInfo& info) {
  const std::string name = info[1].As<Napi::String>();
  const Bytes layout = View(info.Env(), info[2], napi_float64_array);
  return Guarded(info.Env(), [&] {
    std::vector<double> numbers(layout.length);
    if (layout.length > 0) std::memcpy(numbers.data(), layout.data, layout.length * sizeof(double));
    return Napi::Number::New(info.Env(), Live().MakeKernel(Number(info, 0), name, numbers.data(), numbers.size()));
  });
}

void Engine::ReleaseKernel(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().ReleaseKernel(Number(info, 0)); });
}

Napi::Value Engine::Facts(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return ArrayOf(info.Env(), Live().Facts(Number(info, 0))); });
}

/** A copy of the commands of a batch: what was checked must not change while it is carried out, as shared memory may. */
const std::vector<double>& Engine::CellsOf(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info.Env(), info[0]);
  const size_t count = Whole(Number(info, 1), "submit", "the number of cells");
  if (count > bytes.length / sizeof(double)) throw Napi::RangeError::New(info.Env(), "more cells than the array holds");
  cells_.resize(count);
  if (count > 0) std::memcpy(cells_.data(), bytes.data, count * sizeof(double));
  return cells_;
}

/** Resolves when cuBLASLt, or cuDNN, is ready for such a product; rejects if it cannot compute it. */
Napi::Value Engine::PrepareProduct(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    const std::shared_ptr<Job> job = Live().PrepareProduct(cells.data(), cells.size());
    const uint64_t number = promises_->NextNumber();
    const Napi::Value promise = promises_->Make(info.Env(), number, Arrival());
    job->Then([this, number, job = job.get()] { promises_->Answer(number, job->error.code); });
    return promise;
  });
}

void Engine::Submit(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    Live().Submit(cells.data(), cells.size());
  });
}

Napi::Value Engine::SubmitTimed(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    return ArrayOf(info.Env(), Live().SubmitTimed(cells.data(), cells.size()));
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

void Engine::Dispose(const Napi::CallbackInfo&) { Close(); }
