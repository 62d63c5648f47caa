/** The Driver as a JavaScript class, `Driver`: what driver-class.h of @polygrad/addon does not have. */
#pragma once
#include <napi.h>

#include <memory>
#include <vector>

#include "driver.h"
#include "driver-class.h"

class Engine : public DriverClass<Engine, Driver> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit Engine(const Napi::CallbackInfo& info);

 private:
  Napi::Value Read(const Napi::CallbackInfo& info);
  Napi::Value Idle(const Napi::CallbackInfo& info);
  Napi::Value Build(const Napi::CallbackInfo& info);
  Napi::Value Built(const Napi::CallbackInfo& info);
  void Finish(const Napi::CallbackInfo& info);
  void ReleaseModule(const Napi::CallbackInfo& info);
  Napi::Value Facts(const Napi::CallbackInfo& info);
  Napi::Value PrepareProduct(const Napi::CallbackInfo& info);
  Napi::Value GraphFacts(const Napi::CallbackInfo& info);
  Napi::Value MemoryInfo(const Napi::CallbackInfo& info);
  void Trim(const Napi::CallbackInfo& info);

  Napi::Value Await(Napi::Env env, std::vector<Mark> marks, Arrival arrival);
};
