/** Programs that threads compile while JavaScript goes on, several side by side. */
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cl.h"
#include "jobs.h"

/** A program that is being compiled. */
class BuildJob : public Job {
 public:
  ~BuildJob() override {
    if (program != nullptr) cl.ReleaseProgram(program);
  }

  /** Belongs to the job until somebody takes it and puts null here. */
  cl_program program = nullptr;
  /** The driver's binary, empty if it was not requested. */
  std::vector<uint8_t> binary;
};

class Builder {
 public:
  /**
   * Programs for `context`. `reload`: the driver compiles for good only when asked for the binary, and runs what it was made from only if
   * it is loaded from there. Such a driver compiles in contexts of the threads, because it locks a context meanwhile. `beside`: it may
   * compile on threads; otherwise all is compiled on the calling thread.
   */
  Builder(DeviceChoice choice, cl_context context, bool beside) : choice_(choice), context_(context), threads_(beside) {}

  /** `lock`: the file of a FileLock, held from the first look at the source until the program is there. */
  std::shared_ptr<BuildJob> Add(std::string source, std::string options, bool reload, std::string lock);
  /** Anything else that compiles. */
  std::shared_ptr<Job> Add(std::function<void()> task, std::string lock);
  /** Gives up what has not begun, waits for the rest, ends the threads. */
  void Stop() { threads_.Stop(); }

 private:
  void Make(BuildJob& job, const std::string& source, const std::string& options, cl_context own);

  const DeviceChoice choice_;
  const cl_context context_;
  JobThreads threads_;
};

/** A context on one device. */
cl_context MakeContext(DeviceChoice choice);
/** Compiles source, or a binary, for a device; throws ClError with the log. */
cl_program BuildSource(cl_context context, cl_device_id device, const std::string& source, const std::string& options);
cl_program BuildBinary(cl_context context, cl_device_id device, const uint8_t* data, size_t bytes, const std::string& options);
std::vector<uint8_t> BinaryOf(cl_program program);
