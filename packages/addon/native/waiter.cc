#include "waiter.h"

#include <system_error>

void Waiter::Add(Wait wait, uint64_t number) {
  {
    std::lock_guard<std::mutex> lock(guard_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
      jobs_.emplace_back(wait, number);
      wake_.notify_one();
      return;
    } catch (const std::system_error&) {
    }
  }
  done_(number, wait());
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
    const auto [wait, number] = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    done_(number, wait());
  }
}
