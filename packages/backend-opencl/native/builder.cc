#include "builder.h"

#include <cstring>

#include "file-lock.h"

namespace {

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

std::shared_ptr<BuildJob> Builder::Add(std::string source, std::string options, bool reload, std::string lock) {
  const auto job = std::make_shared<BuildJob>();
  threads_.Add(job, [this, source = std::move(source), options = std::move(options), reload, lock = std::move(lock)](
                        Job& made, OfThread& own) {
    // The thread's context.
    if (reload && own == nullptr) own = std::shared_ptr<void>(MakeContext(choice_), [](void* c) { cl.ReleaseContext(static_cast<cl_context>(c)); });
    const FileLock held(lock);
    Make(static_cast<BuildJob&>(made), source, options, reload ? static_cast<cl_context>(own.get()) : nullptr);
  });
  return job;
}

std::shared_ptr<Job> Builder::Add(std::function<void()> task, std::string lock) {
  const auto job = std::make_shared<Job>();
  threads_.Add(job, [task = std::move(task), lock = std::move(lock)](Job&, OfThread&) {
    const FileLock held(lock);
    task();
  });
  return job;
}

void Builder::Make(BuildJob& job, const std::string& source, const std::string& options, cl_context own) {
  if (own != nullptr) {
    cl_program program = ::BuildSource(own, choice_.device, source, options);
    try {
      job.binary = ::BinaryOf(program);
      if (!job.binary.empty())
        job.program = ::BuildBinary(context_, choice_.device, job.binary.data(), job.binary.size(), options);
    } catch (const ClError&) {
      // Not every program can be read back as a binary: then it is compiled on the device where it will run.
      job.binary.clear();
    }
    cl.ReleaseProgram(program);
    if (job.program != nullptr) return;
  }
  job.program = ::BuildSource(context_, choice_.device, source, options);
}
