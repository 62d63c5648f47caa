#include "engine.h"

#include <algorithm>

namespace {

/** A failed call as a JavaScript error with the fields `code`, `call`, `command` and `log`. */
Napi::Error AsError(Napi::Env env, const ClError& e) {
  Napi::Error error = Napi::Error::New(env, std::string(e.call) + " failed with OpenCL error " + std::to_string(e.code));
  error.Set("code", static_cast<double>(e.code));
  error.Set("call", e.call);
  error.Set("command", static_cast<double>(e.command));
  error.Set("log", e.log);
  return error;
}

template <typename F>
auto Guarded(Napi::Env env, F body) -> decltype(body()) {
  try {
    return body();
  } catch (const ClError& error) {
    throw AsError(env, error);
  } catch (const std::bad_alloc&) {
    throw AsError(env, ClError{-6, "new"});
  }
}

double Number(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().DoubleValue(); }

struct Bytes {
  uint8_t* data;
  size_t length;
};

/** The memory of a typed array, shared or not. */
Bytes View(const Napi::CallbackInfo& info, size_t index) {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(info.Env(), info[index], &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != napi_uint8_array)
    throw Napi::TypeError::New(info.Env(), "a Uint8Array is expected");
  return {static_cast<uint8_t*>(data), length};
}

struct Cells {
  const double* data;
  size_t count;
};

/** The commands of a batch: the memory of the cells, and how many there are. */
Cells CellsOf(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info, 0);
  const auto count = static_cast<size_t>(Number(info, 1));
  if (count * sizeof(double) > bytes.length) throw Napi::RangeError::New(info.Env(), "more cells than the array holds");
  return {reinterpret_cast<const double*>(bytes.data), count};
}

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
  const double index = Number(info, 0);
  const bool unified = info[1].As<Napi::Boolean>().Value();
  Guarded(env, [&] { driver_ = std::make_unique<Driver>(FindDevice(static_cast<uint32_t>(index)), unified); });
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
  return Guarded(info.Env(), [&] {
    return Napi::Number::New(info.Env(), Live().Alloc(static_cast<size_t>(Number(info, 0))));
  });
}

void Engine::Free(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().Free(Number(info, 0)); });
}

void Engine::Upload(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info, 2);
  Guarded(info.Env(), [&] { Live().Upload(Number(info, 0), static_cast<size_t>(Number(info, 1)), bytes.data, bytes.length); });
}

void Engine::ReadSync(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info, 2);
  Guarded(info.Env(), [&] { Live().Read(Number(info, 0), static_cast<size_t>(Number(info, 1)), bytes.data, bytes.length); });
}

Napi::Value Engine::Read(const Napi::CallbackInfo& info) {
  const Bytes bytes = View(info, 2);
  return Guarded(info.Env(), [&] {
    const cl_event event =
        Live().ReadLater(Number(info, 0), static_cast<size_t>(Number(info, 1)), bytes.data, bytes.length);
    return Await(info.Env(), event, Napi::Persistent(info[2].As<Napi::Object>()));
  });
}

Napi::Value Engine::Idle(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return Await(info.Env(), Live().Marker(), Napi::ObjectReference()); });
}

Napi::Value Engine::Promise(Napi::Env env, uint64_t number, Napi::ObjectReference target) {
  napi_deferred deferred = nullptr;
  napi_value promise = nullptr;
  if (napi_create_promise(env, &deferred, &promise) != napi_ok) throw Napi::Error::New(env);
  if (pending_.empty()) {
    napi_ref_threadsafe_function(env, answers_);
    Ref();
  }
  pending_.emplace(number, Pending{deferred, std::move(target)});
  return Napi::Value(env, promise);
}

Napi::Value Engine::Await(Napi::Env env, cl_event event, Napi::ObjectReference target) {
  const uint64_t number = next_++;
  try {
    const Napi::Value promise = Promise(env, number, std::move(target));
    waiter_->Add(event, number);
    return promise;
  } catch (const Napi::Error&) {
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

void Engine::Answered(Napi::Env env, const Answer& answer) {
  const Napi::HandleScope scope(env);
  auto found = pending_.find(answer.number);
  if (found == pending_.end()) return;
  const napi_deferred deferred = found->second.deferred;
  pending_.erase(found);
  if (answer.code == CL_COMPLETE) napi_resolve_deferred(env, deferred, env.Undefined());
  else napi_reject_deferred(env, deferred, AsError(env, ClError{answer.code, "the device"}).Value());
  if (pending_.empty()) {
    if (answers_ != nullptr) napi_unref_threadsafe_function(env, answers_);
    Unref();
  }
}

Napi::Value Engine::Build(const Napi::CallbackInfo& info) {
  std::string source = info[0].As<Napi::String>();
  std::string options = info[1].As<Napi::String>();
  const bool reload = info[2].ToBoolean();
  return Guarded(info.Env(),
                 [&] { return Napi::Number::New(info.Env(), Live().Build(std::move(source), std::move(options), reload)); });
}

/** Resolves when a program is compiled or refused; it says nothing about which. */
Napi::Value Engine::Built(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] {
    const std::shared_ptr<BuildJob> job = Live().JobOf(Number(info, 0));
    const uint64_t number = next_++;
    const Napi::Value promise = Promise(info.Env(), number, Napi::ObjectReference());
    if (job == nullptr) Answers(number, CL_COMPLETE);
    else job->Then([this, number] { Answers(number, CL_COMPLETE); });
    return promise;
  });
}

void Engine::Finish(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().Compiled(Number(info, 0)); });
}

Napi::Value Engine::Load(const Napi::CallbackInfo& info) {
  const Bytes binary = View(info, 0);
  const std::string options = info[1].As<Napi::String>();
  return Guarded(info.Env(),
                 [&] { return Napi::Number::New(info.Env(), Live().Load(binary.data, binary.length, options)); });
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
  const Napi::Float64Array layout = info[2].As<Napi::Float64Array>();
  return Guarded(info.Env(), [&] {
    return Napi::Number::New(info.Env(), Live().MakeKernel(Number(info, 0), name, layout.Data(), layout.ElementLength()));
  });
}

void Engine::ReleaseKernel(const Napi::CallbackInfo& info) {
  Guarded(info.Env(), [&] { Live().ReleaseKernel(Number(info, 0)); });
}

/** Resolves when CLBlast is ready for such a product; rejects where it cannot. */
Napi::Value Engine::PrepareProduct(const Napi::CallbackInfo& info) {
  const Cells cells = CellsOf(info);
  return Guarded(info.Env(), [&] {
    const std::shared_ptr<BuildJob> job = Live().PrepareProduct(cells.data, cells.count);
    const uint64_t number = next_++;
    const Napi::Value promise = Promise(info.Env(), number, Napi::ObjectReference());
    job->Then([this, number, job = job.get()] { Answers(number, job->error.code); });
    return promise;
  });
}

void Engine::Submit(const Napi::CallbackInfo& info) {
  const Cells cells = CellsOf(info);
  Guarded(info.Env(), [&] { Live().Submit(cells.data, cells.count); });
}

Napi::Value Engine::SubmitTimed(const Napi::CallbackInfo& info) {
  const Cells cells = CellsOf(info);
  return Guarded(info.Env(), [&] {
    const std::vector<double> times = Live().SubmitTimed(cells.data, cells.count);
    Napi::Float64Array array = Napi::Float64Array::New(info.Env(), times.size());
    std::copy(times.begin(), times.end(), array.Data());
    return array;
  });
}

void Engine::Dispose(const Napi::CallbackInfo&) { Close(); }
