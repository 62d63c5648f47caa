/** Work on threads while JavaScript goes on. Threads start when there is work, and end when there is none left. */
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "native-error.h"

/** A piece of work. What it makes is read by others only after `Wait`. */
class Job {
 public:
  Job() = default;
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /** Waits until it is over. */
  void Wait();
  /** `told` is called when it is over: at once if it is, else on the thread that did it. */
  void Then(std::function<void()> told);

  /** Code 0 if all went well. */
  NativeError error{0, ""};

 private:
  friend class JobThreads;
  void End();

  std::mutex guard_;
  std::condition_variable wake_;
  bool over_ = false;
  std::vector<std::function<void()>> told_;
};

/** Something a thread keeps for its work, made when first needed and released when the thread ends. */
using OfThread = std::shared_ptr<void>;

class JobThreads {
 public:
  using Task = std::function<void(Job& job, OfThread& own)>;

  /** `beside`: work may be done on threads; otherwise all is done on the calling thread. */
  explicit JobThreads(bool beside);
  ~JobThreads() { Stop(); }

  /** Has it done by a thread; on the spot where there may be none, or the system gives none. What it throws becomes `error`. */
  void Add(std::shared_ptr<Job> job, Task task);
  /** Gives up what has not begun, waits for the rest, ends the threads. */
  void Stop();

 private:
  struct Work {
    std::shared_ptr<Job> job;
    Task task;
  };
  void Run();
  static void Do(const Work& work, OfThread& own);
  /** Forgets threads that have ended; under the lock. */
  void Join();

  const bool beside_;
  std::mutex guard_;
  std::deque<Work> work_;
  std::vector<std::thread> threads_;
  /** Those of them that will take no more. */
  std::vector<std::thread::id> ended_;
};
