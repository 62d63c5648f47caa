/** Promises that are answered from any thread, with bytes brought to the arrays that wait for them. */
#pragma once
#include <napi.h>

#include <functional>
#include <memory>
#include <unordered_map>

/** Bytes on their way to an array; empty for what brings none. */
struct Arrival {
  Napi::ObjectReference target;
  /** What the device writes to. */
  std::shared_ptr<void> data;
  size_t bytes = 0;

  Arrival() = default;
  /** For an array: the device writes to memory of its own, because the array may be transferred away and its memory freed before. */
  Arrival(const Napi::Value& array, size_t length, std::shared_ptr<void> memory);
};

class Promises {
 public:
  /** `busy` is told true before the first promise and false after the last one is answered; `gone` is the error of an array without room. */
  Promises(Napi::Env env, const char* name, const char* gone, std::function<void(bool)> busy);
  ~Promises() { Stop(); }
  Promises(const Promises&) = delete;
  Promises& operator=(const Promises&) = delete;

  uint64_t NextNumber() { return next_++; }
  /** A promise to be answered under the number; while one is open the program goes on. */
  Napi::Value Make(Napi::Env env, uint64_t number, Arrival arrival);
  /** Answers from any thread: code 0, or the driver's. */
  void Answer(uint64_t number, int code);
  /** No answer is given after this; those that wait are still delivered. */
  void Stop();

 private:
  struct Pending {
    napi_deferred deferred;
    Arrival arrival;
  };
  struct Answered {
    uint64_t number;
    int code;
  };
  /** Lives as long as answers are on their way. */
  struct State {
    napi_threadsafe_function answers = nullptr;
    std::unordered_map<uint64_t, Pending> pending;
    std::function<void(bool)> busy;
    const char* gone = "";
  };

  static void OnAnswer(napi_env env, napi_value, void* context, void* data);
  static void OnFinalize(napi_env env, void* data, void* hint);
  static void Settle(Napi::Env env, State& state, const Answered& answer);
  /** False if the array has no room any more. */
  static bool Deliver(Napi::Env env, const Arrival& arrival);

  State* state_;
  uint64_t next_ = 1;
};
