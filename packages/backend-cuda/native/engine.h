/** The Driver as a JavaScript class, `Driver`: numbers and typed arrays in, numbers and promises out. */
#pragma once
#include <napi.h>

#include <memory>
#include <vector>

#include "driver.h"
#include "promises.h"
#include "waiter.h"

class Engine : public Napi::ObjectWrap<Engine> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit Engine(const Napi::CallbackInfo& info);
  ~Engine() override { Close(); }

 private:
  Napi::Value Alloc(const Napi::CallbackInfo& info);
  void Free(const Napi::CallbackInfo& info);
  void Upload(const Napi::CallbackInfo& info);
  void ReadSync(const Napi::CallbackInfo& info);
  Napi::Value Read(const Napi::CallbackInfo& info);
  Napi::Value Idle(const Napi::CallbackInfo& info);
  Napi::Value Build(const Napi::CallbackInfo& info);
  Napi::Value Built(const Napi::CallbackInfo& info);
  void Finish(const Napi::CallbackInfo& info);
  void ReleaseModule(const Napi::CallbackInfo& info);
  Napi::Value MakeKernel(const Napi::CallbackInfo& info);
  void ReleaseKernel(const Napi::CallbackInfo& info);
  Napi::Value Facts(const Napi::CallbackInfo& info);
  Napi::Value PrepareProduct(const Napi::CallbackInfo& info);
  void Submit(const Napi::CallbackInfo& info);
  Napi::Value SubmitTimed(const Napi::CallbackInfo& info);
  Napi::Value GraphFacts(const Napi::CallbackInfo& info);
  Napi::Value MemoryInfo(const Napi::CallbackInfo& info);
  void Trim(const Napi::CallbackInfo& info);
  void Dispose(const Napi::CallbackInfo& info);

  Driver& Live();
  Napi::Value Await(Napi::Env env, std::vector<Mark> marks, Arrival arrival);
  const std::vector<double>& CellsOf(const Napi::CallbackInfo& info);
  void Close();
  static void OnCleanup(void* self);

  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Promises> promises_;
  std::unique_ptr<Waiter> waiter_;
  /** The batch that is being submitted. */
  std::vector<double> cells_;
};
