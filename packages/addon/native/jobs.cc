#include "jobs.h"

#include <algorithm>
#include <exception>
#include <system_error>

namespace {

/** More threads than this gain little: drivers lock what they share. */
constexpr size_t kMostThreads = 8;

size_t ThreadLimit() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads); }

}  // namespace

void Job::Wait() {
  std::unique_lock<std::mutex> lock(guard_);
  wake_.wait(lock, [this] { return over_; });
}

void Job::Then(std::function<void()> told) {
  {
    std::lock_guard<std::mutex> lock(guard_);
    if (!over_) {
      told_.push_back(std::move(told));
      return;
    }
  }
  told();
}

void Job::End() {
  std::vector<std::function<void()>> told;
  {
    std::lock_guard<std::mutex> lock(guard_);
    over_ = true;
    told.swap(told_);
    wake_.notify_all();
  }
  for (const auto& tell : told) tell();
}

JobThreads::JobThreads(bool beside) : beside_(beside) {
  // A thread that has started must find its place.
  threads_.reserve(ThreadLimit());
  ended_.reserve(ThreadLimit());
}

void JobThreads::Add(std::shared_ptr<Job> job, Task task) {
  const Work work{std::move(job), std::move(task)};
  if (beside_) {
    std::lock_guard<std::mutex> lock(guard_);
    Join();
    work_.push_back(work);
    if (threads_.size() >= ThreadLimit()) return;
    try {
      threads_.emplace_back([this] { Run(); });
      return;
    } catch (const std::system_error&) {
      // The system gives no thread: one that runs looks for work once more before it ends.
      if (!threads_.empty()) return;
      work_.pop_back();
    }
  }
  OfThread own;
  Do(work, own);
}

void JobThreads::Join() {
  for (const std::thread::id id : ended_) {
    const auto thread = std::find_if(threads_.begin(), threads_.end(), [id](const std::thread& t) { return t.get_id() == id; });
    thread->join();
    threads_.erase(thread);
  }
  ended_.clear();
}

void JobThreads::Stop() {
  std::deque<Work> dropped;
  {
    std::lock_guard<std::mutex> lock(guard_);
    dropped.swap(work_);
  }
  for (const Work& work : dropped) {
    work.job->error = NativeError{kInvalidValue, "disposed"};
    work.job->End();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  ended_.clear();
}

void JobThreads::Run() {
  OfThread own;
  for (;;) {
    Work work;
    {
      std::lock_guard<std::mutex> lock(guard_);
      if (work_.empty()) {
        ended_.push_back(std::this_thread::get_id());
        return;
      }
      work = work_.front();
      work_.pop_front();
    }
    Do(work, own);
  }
}

void JobThreads::Do(const Work& work, OfThread& own) {
  Job& job = *work.job;
  try {
    work.task(job, own);
  } catch (const NativeError& error) {
    job.error = error;
  } catch (const std::exception&) {
    job.error = NativeError{kOutOfHostMemory, "new"};
  }
  job.End();
}
