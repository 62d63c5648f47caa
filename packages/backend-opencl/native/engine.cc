#include "engine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "guarded.h"

namespace {

constexpr const char* kGone =
    "[opencl.download] the array was transferred away or made shorter before what is read arrived; leave it alone until then";

std::vector<double> Doubles(const uint8_t* data, size_t count) {
  std::vector<double> copy(count);
  if (count > 0) std::memcpy(copy.data(), data, count * sizeof(double));
  return copy;
}

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

Engine::Engine(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Engine>(info) {
  const Napi::Env env = info.Env();
  if (!IsOpen()) throw Napi::Error::New(env, "open() comes first");
  const bool unified = info[1].As<Napi::Boolean>().Value();
  const bool beside = info[2].IsUndefined() || info[2].ToBoolean();
  Guarded(env, [&] {
    const size_t index = Whole(Number(info, 0), "Driver", "the device", 65535);
    driver_ = std::make_unique<Driver>(FindDevice(static_cast<uint32_t>(index)), unified, beside);
  });
  promises_ = std::make_unique<Promises>(env, "polygrad opencl", kGone, [this](bool busy) {
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
  promises_->Stop();
  driver_ = nullptr;
}

Driver& Engine::Live() {
  if (driver_ == nullptr) throw ClError{CL_INVALID_VALUE, "disposed"};
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
    std::shared_ptr<void> held;
    if (bytes > 0) {
      held = std::shared_ptr<void>(std::malloc(bytes), std::free);
      if (held == nullptr) throw std::bad_alloc();
    }
    const cl_event event = Live().ReadLater(Number(info, 0), Number(info, 1), held.get(), bytes);
    return Await(info.Env(), event, Arrival(info[2], bytes, held));
  });
}

Napi::Value Engine::Idle(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return Await(info.Env(), Live().Marker(), Arrival()); });
}

Napi::Value Engine::Await(Napi::Env env, cl_event event, Arrival arrival) {
  const uint64_t number = promises_->NextNumber();
  // Stays until the device has written, whatever is thrown.
  const std::shared_ptr<void> held = arrival.data;
  try {
    const Napi::Value promise = promises_->Make(env, number, std::move(arrival));
    waiter_->Add([event] { return WaitFor(event); }, number);
    return promise;
  } catch (...) {
    cl.WaitForEvents(1, &event);
    cl.ReleaseEvent(event);
    throw;
  }
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
  return Guarded(info.Env(), [&] {
    const std::shared_ptr<BuildJob> job = Live().JobOf(Number(info, 0));
    const uint64_t number = promises_->NextNumber();
    const Napi::Value promise = promises_->Make(info.Env(), number, Arrival());
    if (job == nullptr) promises_->Answer(number, CL_COMPLETE);
    else job->Then([this, number] { promises_->Answer(number, CL_COMPLETE); });
    return promise;
  });
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

Napi::Value Engine::MakeKernel(const Napi::CallbackInfo& info) {
  const std::string name = info[1].As<Napi::String>();
  const Bytes layout = View(info.Env(), info[2], napi_float64_array);
  return Guarded(info.Env(), [&] {
    const std::vector<double> numbers = Doubles(layout.data, layout.length);
    return Napi::Number::New(info.Env(), Live().MakeKernel(Number(info, 0), name, numbers.data(), numbers.size()));
  });
}

void Engine::ReleaseKernel(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().ReleaseKernel(Number(info, 0)); });
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

/** Resolves when CLBlast is ready for such a product; rejects if it cannot compute it. */
Napi::Value Engine::PrepareProduct(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    const std::shared_ptr<Job> job = Live().PrepareProduct(cells.data(), cells.size(), PathOf(info[2]));
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
    const std::vector<double> times = Live().SubmitTimed(cells.data(), cells.size());
    Napi::Float64Array array = Napi::Float64Array::New(info.Env(), times.size());
    std::copy(times.begin(), times.end(), array.Data());
    return array;
  });
}

void Engine::Dispose(const Napi::CallbackInfo&) { Close(); }
