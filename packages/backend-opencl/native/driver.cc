/** Memory, programs and life of a Driver. Batches are in submit.cc. */
#include "driver.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "file-lock.h"

namespace {

/** Uploads from this size on go straight to the device where it is idle; smaller ones are not worth waiting for. */
constexpr size_t kDirectBytes = 1 << 18;
/** Most bytes that wait in copies before an upload waits for the device. */
constexpr size_t kMostStaged = size_t{1} << 28;

struct Staging {
  void* data;
  size_t bytes;
  std::shared_ptr<std::atomic<size_t>> total;
};

void CL_CALL FreeStaging(cl_event, cl_int, void* raw) {
  auto* staging = static_cast<Staging*>(raw);
  std::free(staging->data);
  *staging->total -= staging->bytes;
  delete staging;
}

}  // namespace

Driver::Driver(DeviceChoice choice, bool unified, bool beside)
    : context_(MakeContext(choice)), device_(choice.device), unified_(unified) {
  cl_int code = CL_SUCCESS;
  queue_ = cl.CreateCommandQueue(context_, device_, 0, &code);
  if (code != CL_SUCCESS) {
    Close();
    throw ClError{code, "clCreateCommandQueue"};
  }
  builder_ = std::make_unique<Builder>(choice, context_, beside);
}

void Driver::StopBuilding() {
  if (builder_ != nullptr) builder_->Stop();
}

void Driver::Close() {
  StopBuilding();
  if (queue_ != nullptr) cl.Finish(queue_);
  Track(nullptr);
  kernels_.Clear([](Kernel& k) { cl.ReleaseKernel(k.kernel); });
  programs_.Clear([](Program& p) {
    if (p.program != nullptr) cl.ReleaseProgram(p.program);
  });
  buffers_.Clear([](Memory& m) { cl.ReleaseMemObject(m.memory); });
  if (queue_ != nullptr) cl.ReleaseCommandQueue(queue_);
  if (timed_ != nullptr) cl.ReleaseCommandQueue(timed_);
  if (context_ != nullptr) cl.ReleaseContext(context_);
  queue_ = nullptr;
  timed_ = nullptr;
  context_ = nullptr;
}

void Driver::Track(cl_event event) {
  if (last_ != nullptr) cl.ReleaseEvent(last_);
  last_ = event;
}

bool Driver::Idle() {
  if (last_ == nullptr) return true;
  cl_int status = 1;
  if (cl.GetEventInfo(last_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) != CL_SUCCESS) return false;
  return status == CL_COMPLETE;
}

const Memory& Driver::Buffer(double number) {
  const Memory* found = buffers_.Find(number);
  if (found == nullptr) throw ClError{CL_INVALID_MEM_OBJECT, "buffer"};
  return *found;
}

cl_mem Driver::Within(double number, size_t offset, size_t bytes, const char* call) {
  const Memory& found = Buffer(number);
  if (bytes > found.bytes || offset > found.bytes - bytes)
    Refuse(call, "offset " + std::to_string(offset) + " and " + std::to_string(bytes) + " bytes leave a buffer of " +
                     std::to_string(found.bytes));
  return found.memory;
}

uint32_t Driver::Alloc(double wanted) {
  const size_t bytes = Whole(wanted, "alloc", "the number of bytes");
  const cl_bitfield flags = CL_MEM_READ_WRITE | (unified_ ? CL_MEM_ALLOC_HOST_PTR : 0);
  cl_int code = CL_SUCCESS;
  cl_mem memory = cl.CreateBuffer(context_, flags, bytes, nullptr, &code);
  Check(code, "clCreateBuffer");
  return buffers_.Add({memory, bytes});
}

void Driver::Free(double buffer) {
  const cl_mem memory = Buffer(buffer).memory;
  buffers_.Remove(static_cast<uint32_t>(buffer));
  // The driver keeps the memory until the commands that use it have finished.
  Check(cl.ReleaseMemObject(memory), "clReleaseMemObject");
}

void Driver::Upload(double buffer, double from, const void* data, size_t bytes) {
  const size_t offset = Whole(from, "upload", "the offset");
  const cl_mem memory = Within(buffer, offset, bytes, "upload");
  if (bytes == 0) return;
  if (bytes >= kDirectBytes && (*staged_ + bytes > kMostStaged || Idle())) {
    if (unified_) {
      cl_int code = CL_SUCCESS;
      void* mapped =
          cl.EnqueueMapBuffer(queue_, memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, offset, bytes, 0, nullptr, nullptr, &code);
      Check(code, "clEnqueueMapBuffer");
      std::memcpy(mapped, data, bytes);
      Check(cl.EnqueueUnmapMemObject(queue_, memory, mapped, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
      Check(cl.Flush(queue_), "clFlush");
    } else {
      Check(cl.EnqueueWriteBuffer(queue_, memory, CL_TRUE, offset, bytes, data, 0, nullptr, nullptr), "clEnqueueWriteBuffer");
    }
    return;
  }
  void* copy = std::malloc(bytes);
  if (copy == nullptr) throw ClError{-6, "malloc"};
  std::memcpy(copy, data, bytes);
  cl_event event = nullptr;
  const cl_int code = cl.EnqueueWriteBuffer(queue_, memory, CL_FALSE, offset, bytes, copy, 0, nullptr, &event);
  if (code != CL_SUCCESS) {
    std::free(copy);
    throw ClError{code, "clEnqueueWriteBuffer"};
  }
  *staged_ += bytes;
  auto* staging = new Staging{copy, bytes, staged_};
  if (cl.SetEventCallback(event, CL_COMPLETE, FreeStaging, staging) != CL_SUCCESS) {
    cl.WaitForEvents(1, &event);
    FreeStaging(event, CL_COMPLETE, staging);
  }
  Track(event);
  Check(cl.Flush(queue_), "clFlush");
}

void Driver::Read(double buffer, double from, void* into, size_t bytes) {
  const size_t offset = Whole(from, "read", "the offset");
  const cl_mem memory = Within(buffer, offset, bytes, "read");
  if (bytes == 0) return;
  if (unified_ && bytes >= kDirectBytes) {
    cl_int code = CL_SUCCESS;
    void* mapped = cl.EnqueueMapBuffer(queue_, memory, CL_TRUE, CL_MAP_READ, offset, bytes, 0, nullptr, nullptr, &code);
    Check(code, "clEnqueueMapBuffer");
    std::memcpy(into, mapped, bytes);
    Check(cl.EnqueueUnmapMemObject(queue_, memory, mapped, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
    Check(cl.Flush(queue_), "clFlush");
  } else {
    Check(cl.EnqueueReadBuffer(queue_, memory, CL_TRUE, offset, bytes, into, 0, nullptr, nullptr), "clEnqueueReadBuffer");
  }
  Track(nullptr);
}

cl_event Driver::ReadLater(double buffer, double from, void* into, size_t bytes) {
  const size_t offset = Whole(from, "read", "the offset");
  const cl_mem memory = Within(buffer, offset, bytes, "read");
  if (bytes == 0) return Marker();
  cl_event event = nullptr;
  Check(cl.EnqueueReadBuffer(queue_, memory, CL_FALSE, offset, bytes, into, 0, nullptr, &event), "clEnqueueReadBuffer");
  Check(cl.Flush(queue_), "clFlush");
  return event;
}

cl_event Driver::Marker() {
  cl_event event = nullptr;
  Check(cl.EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  Check(cl.Flush(queue_), "clFlush");
  return event;
}

uint32_t Driver::Build(std::string source, std::string options, bool reload, std::string lock) {
  return programs_.Add({nullptr, builder_->Add(std::move(source), std::move(options), reload, std::move(lock))});
}

uint32_t Driver::Load(const uint8_t* data, size_t bytes, const std::string& options, const std::string& lock) {
  const FileLock held(lock);
  return programs_.Add({::BuildBinary(context_, device_, data, bytes, options)});
}

Program& Driver::Find(double number) {
  Program* found = programs_.Find(number);
  if (found == nullptr) throw ClError{CL_INVALID_VALUE, "program"};
  return *found;
}

std::shared_ptr<BuildJob> Driver::JobOf(double number) { return Find(number).job; }

cl_program Driver::Compiled(double number) {
  Program& found = Find(number);
  if (found.program != nullptr) return found.program;
  found.job->Wait();
  if (found.job->error.code != CL_SUCCESS) throw found.job->error;
  std::swap(found.program, found.job->program);
  return found.program;
}

std::vector<uint8_t> Driver::BinaryOf(double number) {
  const cl_program program = Compiled(number);
  Program& found = Find(number);
  if (found.job == nullptr || found.job->binary.empty()) return ::BinaryOf(program);
  const std::shared_ptr<BuildJob> job = std::move(found.job);
  return std::move(job->binary);
}

void Driver::ReleaseProgram(double number) {
  const cl_program program = Find(number).program;
  if (program != nullptr) cl.ReleaseProgram(program);
  programs_.Remove(static_cast<uint32_t>(number));
}

uint32_t Driver::MakeKernel(double number, const std::string& name, const double* layout, size_t count) {
  if (count < 6) Refuse("kernel", "the layout is shorter than six numbers");
  Kernel made;
  for (int axis = 0; axis < 3; axis++) {
    made.local[axis] = Whole(layout[3 + axis], "kernel", "the threads of a group", 1 << 20);
    made.global[axis] = Whole(layout[axis], "kernel", "the groups", 4294967296.0) * made.local[axis];
    if (made.global[axis] > 1) made.dimensions = static_cast<cl_uint>(axis + 1);
  }
  for (size_t i = 6; i < count; i++) {
    const size_t bytes = Whole(layout[i], "kernel", "the bytes of an argument", 8);
    if ((bytes & (bytes - 1)) != 0) Refuse("kernel", "an argument has " + std::to_string(bytes) + " bytes, not 1, 2, 4 or 8");
    made.sizes.push_back(static_cast<uint8_t>(bytes));
  }
  const cl_program program = Compiled(number);
  // Nobody asks for the binary of a program that runs already.
  Find(number).job = nullptr;
  cl_int code = CL_SUCCESS;
  made.kernel = cl.CreateKernel(program, name.c_str(), &code);
  Check(code, "clCreateKernel");
  try {
    CheckArguments(made);
  } catch (...) {
    cl.ReleaseKernel(made.kernel);
    throw;
  }
  size_t most = 0;
  const cl_int asked = cl.GetKernelWorkGroupInfo(made.kernel, device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
  const size_t threads = made.local[0] * made.local[1] * made.local[2];
  if (asked == CL_SUCCESS && most > 0 && threads > most) {
    cl.ReleaseKernel(made.kernel);
    throw ClError{-54, "clGetKernelWorkGroupInfo", -1,
                  "the device runs this kernel with at most " + std::to_string(most) + " threads in a group, not " +
                      std::to_string(threads)};
  }
  return kernels_.Add(std::move(made));
}

/** A number given for a pointer would be followed by the driver, and a pointer for a number would be computed with. */
void Driver::CheckArguments(const Kernel& made) {
  cl_uint wanted = 0;
  const cl_int known = cl.GetKernelInfo(made.kernel, CL_KERNEL_NUM_ARGS, sizeof wanted, &wanted, nullptr);
  if (known == CL_SUCCESS && wanted != made.sizes.size())
    Refuse("kernel", "it takes " + std::to_string(wanted) + " arguments, the layout has " + std::to_string(made.sizes.size()));
  for (size_t i = 0; i < made.sizes.size(); i++) {
    cl_uint where = 0;
    if (cl.GetKernelArgInfo(made.kernel, static_cast<cl_uint>(i), CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where,
                            nullptr) != CL_SUCCESS)
      continue;
    const bool isBuffer = where == CL_KERNEL_ARG_ADDRESS_GLOBAL || where == CL_KERNEL_ARG_ADDRESS_CONSTANT;
    if (isBuffer != (made.sizes[i] == 0) || (!isBuffer && where != CL_KERNEL_ARG_ADDRESS_PRIVATE))
      Refuse("kernel", "argument " + std::to_string(i) + " is a buffer in the kernel or in the layout, but not in both");
  }
}

void Driver::ReleaseKernel(double number) {
  Kernel* kernel = kernels_.Find(number);
  if (kernel == nullptr) throw ClError{CL_INVALID_VALUE, "kernel"};
  cl.ReleaseKernel(kernel->kernel);
  kernels_.Remove(static_cast<uint32_t>(number));
}
