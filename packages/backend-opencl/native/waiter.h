/** A thread that waits for events in the order they were given and says what became of each. Starts when first needed. */
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "cl.h"

class Waiter {
 public:
  /** `done` is called on the thread: the number given, and CL_COMPLETE or an error code. */
  explicit Waiter(std::function<void(uint64_t, cl_int)> done) : done_(std::move(done)) {}
  ~Waiter() { Stop(); }

  /** Takes the event over. Where the system gives no thread it is waited for on the spot. */
  void Add(cl_event event, uint64_t number);
  /** Waits until everything given has been answered, then ends the thread. */
  void Stop();

 private:
  void Run();
  void Wait(cl_event event, uint64_t number);

  std::function<void(uint64_t, cl_int)> done_;
  std::mutex guard_;
  std::condition_variable wake_;
  std::deque<std::pair<cl_event, uint64_t>> jobs_;
  std::thread thread_;
  bool stopping_ = false;
};
