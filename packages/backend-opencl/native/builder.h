/**
 * Threads that compile programs while JavaScript goes on, several programs side by side. They start when there is work, and end
 * when there is none left.
 */
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cl.h"

/** A program that is being compiled. Its fields are read by others only after `Wait`. */
class BuildJob {
 public:
  BuildJob(std::string source, std::string options, std::string lock)
      : source_(std::move(source)), options_(std::move(options)), lock_(std::move(lock)) {}
  ~BuildJob() {
    if (program != nullptr) cl.ReleaseProgram(program);
  }

  /** Waits until it is over. */
  void Wait();
  bool Over();
  /** `told` is called when it is over: at once if it is, else on the thread that compiles. */
  void Then(std::function<void()> told);

  /** Belongs to the job until somebody takes it and puts null here. */
  cl_program program = nullptr;
  /** What the driver made of it, empty if nobody wanted it. */
  std::vector<uint8_t> binary;
  /** Code 0 if all went well. */
  ClError error{CL_SUCCESS, ""};

 private:
  friend class Builder;
  void End();

  const std::string source_;
  const std::string options_;
  /** The file to lock meanwhile, or empty. */
  const std::string lock_;
  std::mutex guard_;
  std::condition_variable wake_;
  bool over_ = false;
  std::vector<std::function<void()>> told_;
};

class Builder {
 public:
  /**
   * Programs for `context`. `reload`: the driver compiles for good only when asked for the binary, and runs what it was made from only if
   * it is loaded from there. Such a driver compiles in contexts of the threads, because it locks a context meanwhile. `beside`: it may
   * compile on threads; otherwise all is compiled where it is asked for.
   */
  Builder(DeviceChoice choice, cl_context context, bool beside);
  ~Builder() { Stop(); }

  /** `lock`: the file of a FileLock, held from the first look at the source until the program is there. */
  std::shared_ptr<BuildJob> Add(std::string source, std::string options, bool reload, std::string lock);
  /** Anything else that compiles. */
  std::shared_ptr<BuildJob> Add(std::function<void()> task, std::string lock);
  /** Gives up what has not begun, waits for the rest, ends the threads. */
  void Stop();

 private:
  struct Work {
    std::shared_ptr<BuildJob> job;
    bool reload;
    /** What is to be done instead of compiling a program. */
    std::function<void()> task;
  };
  /** Has it done by a thread; on the spot where there may be none, or the system gives none. */
  std::shared_ptr<BuildJob> Push(Work work);
  void Run();
  /** `own`: the thread's context, made when first needed. */
  void Do(const Work& work, cl_context* own);
  /** Forgets threads that have ended; under the lock. */
  void Join();
  void Make(BuildJob& job, cl_context own);

  const DeviceChoice choice_;
  const cl_context context_;
  const bool beside_;
  std::mutex guard_;
  std::deque<Work> work_;
  std::vector<std::thread> threads_;
  /** Those of them that will take no more. */
  std::vector<std::thread::id> ended_;
};

/** A context on one device. */
cl_context MakeContext(DeviceChoice choice);
/** Compiles source, or a binary, for a device; throws ClError with the log. */
cl_program BuildSource(cl_context context, cl_device_id device, const std::string& source, const std::string& options);
cl_program BuildBinary(cl_context context, cl_device_id device, const uint8_t* data, size_t bytes, const std::string& options);
std::vector<uint8_t> BinaryOf(cl_program program);
