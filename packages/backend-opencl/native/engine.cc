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
  const Napi::String name = Napi::String::New(env, "polygrad opencl");
  if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, OnAnswer, &answers_) != napi_ok)
    throw Napi::Error::New(env, "a thread-safe function cannot be made");
  // Only work in flight keeps the program running.
  napi_unref_threadsafe_function(env, answers_);
  waiter_ = std::make_unique<Waiter>([this](uint64_t number, cl_int code) { Answers(number, code); });
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
  // Answers that wait are still delivered.
  if (answers_ != nullptr) napi_release_threadsafe_function(answers_, napi_tsfn_release);
  answers_ = nullptr;
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

/** The array may be transferred away before the device has written, and its memory freed: the device writes to memory of its own. */
Napi::Value Engine::Read(const Napi::CallbackInfo& info) {
  const size_t bytes = View(info.Env(), info[2]).length;
  return Guarded(info.Env(), [&] {
    Arrival arrival;
    arrival.target = Napi::Persistent(info[2].As<Napi::Object>());
    arrival.bytes = bytes;
    if (bytes > 0) {
      arrival.data = std::shared_ptr<void>(std::malloc(bytes), std::free);
      if (arrival.data == nullptr) throw std::bad_alloc();
    }
    const std::shared_ptr<void> held = arrival.data;
    const cl_event event = Live().ReadLater(Number(info, 0), Number(info, 1), held.get(), bytes);
    return Await(info.Env(), event, std::move(arrival));
  });
}

Napi::Value Engine::Idle(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return Await(info.Env(), Live().Marker(), Arrival()); });
}

Napi::Value Engine::Promise(Napi::Env env, uint64_t number, Arrival arrival) {
  napi_deferred deferred = nullptr;
  napi_value promise = nullptr;
  if (napi_create_promise(env, &deferred, &promise) != napi_ok) throw Napi::Error::New(env);
  pending_.emplace(number, Pending{deferred, std::move(arrival)});
  if (pending_.size() == 1) {
    napi_ref_threadsafe_function(env, answers_);
    Ref();
  }
  return Napi::Value(env, promise);
}

Napi::Value Engine::Await(Napi::Env env, cl_event event, Arrival arrival) {
  const uint64_t number = next_++;
  // Stays until the device has written, whatever is thrown.
  const std::shared_ptr<void> held = arrival.data;
  try {
    const Napi::Value promise = Promise(env, number, std::move(arrival));
    waiter_->Add(event, number);
    return promise;
  } catch (...) {
    cl.WaitForEvents(1, &event);
    cl.ReleaseEvent(event);
    throw;
  }
}

void Engine::Answers(uint64_t number, cl_int code) {
  auto* answer = new Answer{number, code};
  if (napi_call_threadsafe_function(answers_, answer, napi_tsfn_nonblocking) != napi_ok) delete answer;
}

void Engine::OnAnswer(napi_env env, napi_value, void* context, void* data) {
  const std::unique_ptr<Answer> answer(static_cast<Answer*>(data));
  // No environment: it is being taken down, and nobody waits any more. The same while a thread of Node is being ended:
  // then calls fail, and no exception may leave this function.
  if (env == nullptr) return;
  try {
    static_cast<Engine*>(context)->Answered(env, *answer);
  } catch (const Napi::Error&) {
  }
}

bool Engine::Deliver(Napi::Env env, const Arrival& arrival) {
  if (arrival.data == nullptr) return true;
  const Bytes now = View(env, arrival.target.Value());
  if (now.length < arrival.bytes) return false;
  std::memcpy(now.data, arrival.data.get(), arrival.bytes);
  return true;
}

void Engine::Answered(Napi::Env env, const Answer& answer) {
  const Napi::HandleScope scope(env);
  auto found = pending_.find(answer.number);
  if (found == pending_.end()) return;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  if (answer.code != CL_COMPLETE)
    napi_reject_deferred(env, pending.deferred, AsError(env, ClError{answer.code, "the device"}).Value());
  else if (!Deliver(env, pending.arrival))
    napi_reject_deferred(env, pending.deferred, Napi::TypeError::New(env, kGone).Value());
  else napi_resolve_deferred(env, pending.deferred, env.Undefined());
  if (pending_.empty()) {
    if (answers_ != nullptr) napi_unref_threadsafe_function(env, answers_);
    Unref();
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
    const uint64_t number = next_++;
    const Napi::Value promise = Promise(info.Env(), number, Arrival());
    if (job == nullptr) Answers(number, CL_COMPLETE);
    else job->Then([this, number] { Answers(number, CL_COMPLETE); });
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

/** Resolves when CLBlast is ready for such a product; rejects where it cannot. */
Napi::Value Engine::PrepareProduct(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::vector<double>& cells = CellsOf(info);
    const std::shared_ptr<BuildJob> job = Live().PrepareProduct(cells.data(), cells.size(), PathOf(info[2]));
    const uint64_t number = next_++;
    const Napi::Value promise = Promise(info.Env(), number, Arrival());
    job->Then([this, number, job = job.get()] { Answers(number, job->error.code); });
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
