#include "builder.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "file-lock.h"

namespace {

/** More threads than this gain little: drivers lock what they share. */
constexpr size_t kMostThreads = 8;

size_t ThreadLimit() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads); }

cl_program Build(cl_program program, cl_device_id device, const std::string& options) {
  // What arguments kernels take can be asked for then (Driver::CheckArguments).
  const std::string all = options + " -cl-kernel-arg-info";
  const cl_int code = cl.BuildProgram(program, 1, &device, all.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  size_t bytes = 0;
  std::string log;
  if (cl.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) == CL_SUCCESS && bytes > 1) {
    log.resize(bytes);
    cl.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, &log[0], nullptr);
    log.resize(std::strlen(log.c_str()));
  }
  cl.ReleaseProgram(program);
  throw ClError{code, "clBuildProgram", -1, log};
}

}  // namespace

cl_context MakeContext(DeviceChoice choice) {
  constexpr intptr_t kContextPlatform = 0x1084;
  const intptr_t properties[] = {kContextPlatform, reinterpret_cast<intptr_t>(choice.platform), 0};
  cl_int code = CL_SUCCESS;
  cl_context context = cl.CreateContext(properties, 1, &choice.device, nullptr, nullptr, &code);
  Check(code, "clCreateContext");
  return context;
}

cl_program BuildSource(cl_context context, cl_device_id device, const std::string& source, const std::string& options) {
  const char* text = source.c_str();
  const size_t length = source.size();
  cl_int code = CL_SUCCESS;
  cl_program program = cl.CreateProgramWithSource(context, 1, &text, &length, &code);
  Check(code, "clCreateProgramWithSource");
  return Build(program, device, options);
}

cl_program BuildBinary(cl_context context, cl_device_id device, const uint8_t* data, size_t bytes, const std::string& options) {
  cl_int code = CL_SUCCESS;
  cl_int status = CL_SUCCESS;
  cl_program program = cl.CreateProgramWithBinary(context, 1, &device, &bytes, &data, &status, &code);
  Check(code, "clCreateProgramWithBinary");
  return Build(program, device, options);
}

std::vector<uint8_t> BinaryOf(cl_program program) {
  size_t bytes = 0;
  Check(cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr), "clGetProgramInfo");
  std::vector<uint8_t> binary(bytes);
  unsigned char* pointer = binary.data();
  if (bytes > 0) Check(cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof pointer, &pointer, nullptr), "clGetProgramInfo");
  return binary;
}

void BuildJob::Wait() {
  std::unique_lock<std::mutex> lock(guard_);
  wake_.wait(lock, [this] { return over_; });
}

bool BuildJob::Over() {
  std::lock_guard<std::mutex> lock(guard_);
  return over_;
}

void BuildJob::Then(std::function<void()> told) {
  {
    std::lock_guard<std::mutex> lock(guard_);
    if (!over_) {
      told_.push_back(std::move(told));
      return;
    }
  }
  told();
}

void BuildJob::End() {
  std::vector<std::function<void()>> told;
  {
    std::lock_guard<std::mutex> lock(guard_);
    over_ = true;
    told.swap(told_);
    wake_.notify_all();
  }
  for (const auto& tell : told) tell();
}

std::shared_ptr<BuildJob> Builder::Add(std::string source, std::string options, bool reload, std::string lock) {
  return Push({std::make_shared<BuildJob>(std::move(source), std::move(options), std::move(lock)), reload, nullptr});
}

std::shared_ptr<BuildJob> Builder::Add(std::function<void()> task, std::string lock) {
  return Push({std::make_shared<BuildJob>("", "", std::move(lock)), false, std::move(task)});
}

Builder::Builder(DeviceChoice choice, cl_context context, bool beside)
    : choice_(choice), context_(context), beside_(beside) {
  // A thread that has started must find its place.
  threads_.reserve(ThreadLimit());
  ended_.reserve(ThreadLimit());
}

std::shared_ptr<BuildJob> Builder::Push(Work work) {
  const std::shared_ptr<BuildJob> job = work.job;
  if (beside_) {
    std::lock_guard<std::mutex> lock(guard_);
    Join();
    work_.push_back(work);
    if (threads_.size() >= ThreadLimit()) return job;
    try {
      threads_.emplace_back([this] { Run(); });
      return job;
    } catch (const std::system_error&) {
      // The system gives no thread: one that runs looks for work once more before it ends.
      if (!threads_.empty()) return job;
      work_.pop_back();
    }
  }
  cl_context own = nullptr;
  Do(work, &own);
  if (own != nullptr) cl.ReleaseContext(own);
  return job;
}

void Builder::Join() {
  for (const std::thread::id id : ended_) {
    const auto thread = std::find_if(threads_.begin(), threads_.end(), [id](const std::thread& t) { return t.get_id() == id; });
    thread->join();
    threads_.erase(thread);
  }
  ended_.clear();
}

void Builder::Stop() {
  std::deque<Work> dropped;
  {
    std::lock_guard<std::mutex> lock(guard_);
    dropped.swap(work_);
  }
  for (const Work& work : dropped) {
    work.job->error = ClError{CL_INVALID_VALUE, "disposed"};
    work.job->End();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  ended_.clear();
}

void Builder::Run() {
  cl_context own = nullptr;
  for (;;) {
    Work work;
    {
      std::lock_guard<std::mutex> lock(guard_);
      if (work_.empty()) {
        ended_.push_back(std::this_thread::get_id());
        break;
      }
      work = work_.front();
      work_.pop_front();
    }
    Do(work, &own);
  }
  if (own != nullptr) cl.ReleaseContext(own);
}

void Builder::Do(const Work& work, cl_context* own) {
  BuildJob& job = *work.job;
  try {
    if (work.reload && *own == nullptr) *own = MakeContext(choice_);
    const FileLock lock(job.lock_);
    if (work.task) work.task();
    else Make(job, work.reload ? *own : nullptr);
  } catch (const ClError& error) {
    job.error = error;
  } catch (const std::exception&) {
    job.error = ClError{CL_OUT_OF_HOST_MEMORY, "new"};
  }
  job.End();
}

void Builder::Make(BuildJob& job, cl_context own) {
  if (own != nullptr) {
    cl_program program = ::BuildSource(own, choice_.device, job.source_, job.options_);
    try {
      job.binary = ::BinaryOf(program);
      if (!job.binary.empty())
        job.program = ::BuildBinary(context_, choice_.device, job.binary.data(), job.binary.size(), job.options_);
    } catch (const ClError&) {
      // Not every program can be had as a binary: then it is compiled where it will run.
      job.binary.clear();
    }
    cl.ReleaseProgram(program);
    if (job.program != nullptr) return;
  }
  job.program = ::BuildSource(context_, choice_.device, job.source_, job.options_);
}
