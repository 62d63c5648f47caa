/** A thread that waits for things in the order they were given and says what became of each. Starts when first needed. */
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

class Waiter {
 public:
  /** Waits for one thing; 0, or the driver's code. */
  using Wait = std::function<int()>;

  /** `done` is called on the thread: the number given, and what waiting gave. */
  explicit Waiter(std::function<void(uint64_t, int)> done) : done_(std::move(done)) {}
  ~Waiter() { Stop(); }

  /** Where the system gives no thread it is waited for on the spot. */
  void Add(Wait wait, uint64_t number);
  /** Waits until everything given has been answered, then ends the thread. */
  void Stop();

 private:
  void Run();

  std::function<void(uint64_t, int)> done_;
  std::mutex guard_;
  std::condition_variable wake_;
  std::deque<std::pair<Wait, uint64_t>> jobs_;
  std::thread thread_;
  bool stopping_ = false;
};
