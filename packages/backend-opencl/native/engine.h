/** The Driver as a JavaScript class, `Driver`: numbers and typed arrays in, numbers and promises out. */
#pragma once
#include <napi.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "devices.h"
#include "driver.h"
#include "waiter.h"

class Engine : public Napi::ObjectWrap<Engine> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit Engine(const Napi::CallbackInfo& info);
  ~Engine() override { Close(); }

 private:
  /** Bytes on their way to an array; empty for what brings none. */
  struct Arrival {
    Napi::ObjectReference target;
    /** What the device writes to. */
    std::shared_ptr<void> data;
    size_t bytes = 0;
  };
  struct Pending {
    napi_deferred deferred;
    Arrival arrival;
  };
  struct Answer {
    uint64_t number;
    cl_int code;
  };

  Napi::Value Alloc(const Napi::CallbackInfo& info);
  void Free(const Napi::CallbackInfo& info);
  void Upload(const Napi::CallbackInfo& info);
  void ReadSync(const Napi::CallbackInfo& info);
  Napi::Value Read(const Napi::CallbackInfo& info);
  Napi::Value Idle(const Napi::CallbackInfo& info);
  Napi::Value Build(const Napi::CallbackInfo& info);
  Napi::Value Built(const Napi::CallbackInfo& info);
  void Finish(const Napi::CallbackInfo& info);
  Napi::Value Load(const Napi::CallbackInfo& info);
  Napi::Value Binary(const Napi::CallbackInfo& info);
  void ReleaseProgram(const Napi::CallbackInfo& info);
  Napi::Value PrepareProduct(const Napi::CallbackInfo& info);
  Napi::Value MakeKernel(const Napi::CallbackInfo& info);
  void ReleaseKernel(const Napi::CallbackInfo& info);
  void Submit(const Napi::CallbackInfo& info);
  Napi::Value SubmitTimed(const Napi::CallbackInfo& info);
  void Dispose(const Napi::CallbackInfo& info);

  Driver& Live();
  /** A promise to be answered under the number; the first of several keeps the program and this object alive. */
  Napi::Value Promise(Napi::Env env, uint64_t number, Arrival arrival);
  /** A promise for an event, which it takes over. */
  Napi::Value Await(Napi::Env env, cl_event event, Arrival arrival);
  /** Answers from any thread. */
  void Answers(uint64_t number, cl_int code);
  /** Brings what was read to its array; false if that has no room for it any more. */
  static bool Deliver(Napi::Env env, const Arrival& arrival);
  void Answered(Napi::Env env, const Answer& answer);
  const std::vector<double>& CellsOf(const Napi::CallbackInfo& info);
  void Close();
  static void OnAnswer(napi_env env, napi_value, void* context, void* data);
  static void OnCleanup(void* self);

  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Waiter> waiter_;
  napi_threadsafe_function answers_ = nullptr;
  std::unordered_map<uint64_t, Pending> pending_;
  uint64_t next_ = 1;
  /** The batch that is being submitted. */
  std::vector<double> cells_;
};
