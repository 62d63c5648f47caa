/**
 * The JavaScript class `Driver` of an addon, as far as all drivers are alike: numbers and typed arrays in, numbers and promises out. Its life, memory,
 * batches and promises are here; what a driver reads from its device, and how it waits for that, is the addon's own.
 *
 * `Self` is the class of the addon, `Driver` what knows the device: it has Alloc, Free, Upload, Read, MakeKernel, ReleaseKernel, Submit, SubmitTimed and
 * StopBuilding.
 */
#pragma once
#include <napi.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "guarded.h"
#include "jobs.h"
#include "promises.h"
#include "waiter.h"

inline Napi::Float64Array ArrayOf(Napi::Env env, const std::vector<double>& numbers) {
  Napi::Float64Array array = Napi::Float64Array::New(env, numbers.size());
  std::copy(numbers.begin(), numbers.end(), array.Data());
  return array;
}

template <typename Self, typename Driver>
class DriverClass : public Napi::ObjectWrap<Self> {
 public:
  using Info = Napi::CallbackInfo;

  explicit DriverClass(const Info& info) : Napi::ObjectWrap<Self>(info) {}
  ~DriverClass() override { Close(); }

 protected:
  /** `name`: of the addon, for tools of Node; `gone`: the error of an array that has no room any more for what is read. */
  void Start(Napi::Env env, std::unique_ptr<Driver> driver, const char* name, const char* gone) {
    driver_ = std::move(driver);
    promises_ = std::make_unique<Promises>(env, name, gone, [this](bool busy) {
      if (busy) this->Ref();
      else this->Unref();
    });
    waiter_ = std::make_unique<Waiter>([this](uint64_t number, int code) { promises_->Answer(number, code); });
    napi_add_env_cleanup_hook(env, OnCleanup, this);
  }

  Driver& Live() {
    if (driver_ == nullptr) throw NativeError{kInvalidValue, "disposed"};
    return *driver_;
  }

  Napi::Value Alloc(const Info& info) {
    return Guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), Live().Alloc(Number(info, 0))); });
  }

  void Free(const Info& info) {
    Guarded(info.Env(), [&] { Live().Free(Number(info, 0)); });
  }

  void Upload(const Info& info) {
    const Bytes bytes = View(info.Env(), info[2]);
    Guarded(info.Env(), [&] { Live().Upload(Number(info, 0), Number(info, 1), bytes.data, bytes.length); });
  }

  void ReadSync(const Info& info) {
    const Bytes bytes = View(info.Env(), info[2]);
    Guarded(info.Env(), [&] { Live().Read(Number(info, 0), Number(info, 1), bytes.data, bytes.length); });
  }

  /** A kernel of a program, by its name there and its layout. */
  Napi::Value MakeKernel(const Info& info) {
    const std::string name = info[1].As<Napi::String>();
    const Bytes layout = View(info.Env(), info[2], napi_float64_array);
    return Guarded(info.Env(), [&] {
      std::vector<double> numbers(layout.length);
      if (layout.length > 0) std::memcpy(numbers.data(), layout.data, layout.length * sizeof(double));
      return Napi::Number::New(info.Env(), Live().MakeKernel(Number(info, 0), name, numbers.data(), numbers.size()));
    });
  }

  void ReleaseKernel(const Info& info) {
    Guarded(info.Env(), [&] { Live().ReleaseKernel(Number(info, 0)); });
  }

  void Submit(const Info& info) {
    Guarded(info.Env(), [&] {
      const std::vector<double>& cells = CellsOf(info);
      Live().Submit(cells.data(), cells.size());
    });
  }

  Napi::Value SubmitTimed(const Info& info) {
    return Guarded(info.Env(), [&] {
      const std::vector<double>& cells = CellsOf(info);
      return ArrayOf(info.Env(), Live().SubmitTimed(cells.data(), cells.size()));
    });
  }

  void Dispose(const Info&) { Close(); }

  /** A copy of the commands of a batch: what was checked must not change while it is carried out, as shared memory may. */
  const std::vector<double>& CellsOf(const Info& info) {
    const Bytes bytes = View(info.Env(), info[0]);
    const size_t count = Whole(Number(info, 1), "submit", "the number of cells");
    if (count > bytes.length / sizeof(double)) throw Napi::RangeError::New(info.Env(), "more cells than the array holds");
    cells_.resize(count);
    if (count > 0) std::memcpy(cells_.data(), bytes.data, count * sizeof(double));
    return cells_;
  }

  /**
   * A promise for something on its way from the device: `wait` waits for it on a thread, and is called here where there can be no promise. The bytes of
   * `arrival` stay until then.
   */
  Napi::Value Await(Napi::Env env, Waiter::Wait wait, Arrival arrival) {
    const uint64_t number = promises_->NextNumber();
    const std::shared_ptr<void> held = arrival.data;
    try {
      const Napi::Value promise = promises_->Make(env, number, std::move(arrival));
      waiter_->Add(wait, number);
      return promise;
    } catch (...) {
      wait();
      throw;
    }
  }

  /** A promise that is resolved when a job is over, at once where it is null. Only where it `tells` is it rejected if the job failed. */
  Napi::Value WhenOver(Napi::Env env, const std::shared_ptr<Job>& job, bool tells) {
    const uint64_t number = promises_->NextNumber();
    const Napi::Value promise = promises_->Make(env, number, Arrival());
    const Job* told = tells ? job.get() : nullptr;
    if (job == nullptr) promises_->Answer(number, 0);
    else job->Then([this, number, told] { promises_->Answer(number, told == nullptr ? 0 : told->error.code); });
    return promise;
  }

 private:
  /** A thread of Node ends, perhaps in the middle of a kernel: what runs is waited for, then everything goes. */
  static void OnCleanup(void* self) { static_cast<DriverClass*>(self)->Close(); }

  void Close() {
    if (driver_ == nullptr) return;
    if (waiter_ != nullptr) {
      napi_remove_env_cleanup_hook(this->Env(), OnCleanup, this);
      waiter_->Stop();
      waiter_ = nullptr;
    }
    driver_->StopBuilding();
    if (promises_ != nullptr) promises_->Stop();
    driver_ = nullptr;
  }

  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Promises> promises_;
  std::unique_ptr<Waiter> waiter_;
  /** The batch that is being submitted. */
  std::vector<double> cells_;
};
