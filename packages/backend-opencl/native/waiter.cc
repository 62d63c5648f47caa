#include "waiter.h"

#include <system_error>

void Waiter::Add(cl_event event, uint64_t number) {
  {
    std::lock_guard<std::mutex> lock(guard_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
      jobs_.emplace_back(event, number);
      wake_.notify_one();
      return;
    } catch (const std::system_error&) {
    }
  }
  Wait(event, number);
}

void Waiter::Stop() {
  {
    std::lock_guard<std::mutex> lock(guard_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Waiter::Run() {
  for (;;) {
    std::unique_lock<std::mutex> lock(guard_);
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const auto [event, number] = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    Wait(event, number);
  }
}

void Waiter::Wait(cl_event event, uint64_t number) {
  cl_int code = cl.WaitForEvents(1, &event);
  cl_int status = CL_COMPLETE;
  if (cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS && status < 0)
    code = status;
  cl.ReleaseEvent(event);
  done_(number, code);
}
