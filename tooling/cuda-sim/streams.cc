/** Streams and events: work in order on a thread of each stream, and marks in it. */
#include "sim.h"

namespace sim {

void Event::Finish(uint64_t recording) {
  const std::lock_guard<std::mutex> lock(guard);
  if (recording > done) done = recording;
  time = std::chrono::steady_clock::now();
  changed.notify_all();
}

void Event::Wait(uint64_t recording) {
  std::unique_lock<std::mutex> lock(guard);
  changed.wait(lock, [&] { return done >= recording; });
}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(guard_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void Stream::AddAlways(std::function<void()> task) {
  const std::lock_guard<std::mutex> lock(guard_);
  tasks_.push_back(std::move(task));
  wake_.notify_all();
}

void Stream::Add(std::function<int()> task) {
  AddAlways([this, task = std::move(task)] {
    if (device->fault != 0) return;
    const int code = task();
    int none = 0;
    if (code != 0) device->fault.compare_exchange_strong(none, code);
  });
}

void Stream::Wait() {
  std::unique_lock<std::mutex> lock(guard_);
  idle_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

void Stream::Run() {
  std::unique_lock<std::mutex> lock(guard_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    busy_ = false;
    if (tasks_.empty()) idle_.notify_all();
  }
}

}  // namespace sim

using sim::Find;
using sim::handles;

/** For tooling/cuda-sim/cublaslt: the failure that is planned for a call of another library. */
SIM_API polygradSimulatedFailure(const char* call) { return sim::Planned(call); }

/** Work of another library in the order of a stream; it gives an error code, and belongs to the stream where this gives 0. */
SIM_API polygradSimulatedWork(CUstream handle, int (*work)(void*), void* data) {
  SIM_DEVICE("polygradSimulatedWork");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  stream->Add([work, data] { return work(data); });
  return 0;
}

/** 1 where memory is allocated in the order of the stream. */
SIM_API polygradSimulatedHolds(CUstream handle, CUdeviceptr at, size_t bytes) {
  auto stream = Find(handles().streams, handle);
  return stream != nullptr && stream->device->Holds(at, bytes) ? 1 : 0;
}

SIM_API cuStreamCreate(CUstream* made, unsigned flags) {
  SIM_DEVICE("cuStreamCreate");
  if (made == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_shared<sim::Stream>(device);
  *made = reinterpret_cast<CUstream>(stream.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().streams[stream.get()] = stream;
  return 0;
}

SIM_API cuStreamDestroy_v2(CUstream handle) {
  SIM_CALL("cuStreamDestroy");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  stream->Wait();
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().streams.erase(handle);
  return 0;
}

SIM_API cuStreamSynchronize(CUstream handle) {
  SIM_DEVICE("cuStreamSynchronize");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  stream->Wait();
  return device->fault;
}

SIM_API cuStreamWaitEvent(CUstream handle, CUevent mark, unsigned flags) {
  SIM_DEVICE("cuStreamWaitEvent");
  auto stream = Find(handles().streams, handle);
  auto event = Find(handles().events, mark);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t recording = 0;
  {
    const std::lock_guard<std::mutex> lock(event->guard);
    recording = event->asked;
  }
  stream->AddAlways([event, recording] { event->Wait(recording); });
  return 0;
}

SIM_API cuEventCreate(CUevent* made, unsigned flags) {
  SIM_DEVICE("cuEventCreate");
  if (made == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<sim::Event>();
  *made = reinterpret_cast<CUevent>(event.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().events[event.get()] = event;
  return 0;
}

SIM_API cuEventDestroy_v2(CUevent handle) {
  SIM_CALL("cuEventDestroy");
  const std::lock_guard<std::mutex> lock(handles().guard);
  return handles().events.erase(handle) == 1 ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API cuEventRecord(CUevent mark, CUstream handle) {
  SIM_DEVICE("cuEventRecord");
  auto stream = Find(handles().streams, handle);
  auto event = Find(handles().events, mark);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t recording = 0;
  {
    const std::lock_guard<std::mutex> lock(event->guard);
    recording = ++event->asked;
  }
  stream->AddAlways([event, recording] { event->Finish(recording); });
  return 0;
}

SIM_API cuEventQuery(CUevent mark) {
  SIM_DEVICE("cuEventQuery");
  auto event = Find(handles().events, mark);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard<std::mutex> lock(event->guard);
  return event->done >= event->asked ? 0 : CUDA_ERROR_NOT_READY;
}

SIM_API cuEventSynchronize(CUevent mark) {
  SIM_DEVICE("cuEventSynchronize");
  auto event = Find(handles().events, mark);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t recording = 0;
  {
    const std::lock_guard<std::mutex> lock(event->guard);
    recording = event->asked;
  }
  event->Wait(recording);
  return device->fault;
}

SIM_API cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  SIM_DEVICE("cuEventElapsedTime");
  auto first = Find(handles().events, from);
  auto second = Find(handles().events, to);
  if (first == nullptr || second == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard<std::mutex> one(first->guard);
  if (first == second) {
    *milliseconds = 0;
    return 0;
  }
  const std::lock_guard<std::mutex> two(second->guard);
  if (first->done < first->asked || second->done < second->asked) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(second->time - first->time).count();
  return 0;
}
