/** Memory, programs and life of a Driver. Batches are in submit.cc. */
#include "driver.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "file-lock.h"

namespace {

/** Uploads of at least this size go straight to an idle device; smaller ones are not worth waiting for. */
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

/** Most ends of batches that are kept: what used a buffer before waits for a later one. */
constexpr size_t kMostRunning = 64;

Mark Hold(cl_event event) {
  return Mark(event, [](cl_event held) { cl.ReleaseEvent(held); });
}

bool IsOver(const Mark& mark) {
  if (mark == nullptr) return true;
  cl_int status = 1;
  if (cl.GetEventInfo(mark.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) != CL_SUCCESS) return false;
  return status == CL_COMPLETE;
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
  FinishAll();
  running_.clear();
  lastCopy_ = nullptr;
  kernels_.Clear([](Kernel& k) { cl.ReleaseKernel(k.kernel); });
  programs_.Clear([](Program& p) {
    if (p.program != nullptr) cl.ReleaseProgram(p.program);
  });
  buffers_.Clear([](Memory& m) { cl.ReleaseMemObject(m.memory); });
  if (queue_ != nullptr) cl.ReleaseCommandQueue(queue_);
  if (timed_ != nullptr) cl.ReleaseCommandQueue(timed_);
  if (copies_ != nullptr) cl.ReleaseCommandQueue(copies_);
  if (context_ != nullptr) cl.ReleaseContext(context_);
  queue_ = nullptr;
  timed_ = nullptr;
  copies_ = nullptr;
  context_ = nullptr;
}

void Driver::FinishAll() {
  if (queue_ != nullptr) cl.Finish(queue_);
  if (copies_ != nullptr) cl.Finish(copies_);
}

void Driver::EndBatch(cl_event event) {
  running_.emplace_back(batch_++, Hold(event));
  if (running_.size() > kMostRunning) running_.pop_front();
}

bool Driver::Idle() { return running_.empty() || IsOver(running_.back().second); }

Memory& Driver::Buffer(double number) {
  Memory* found = buffers_.Find(number);
  if (found == nullptr) throw ClError{CL_INVALID_MEM_OBJECT, "buffer"};
  return *found;
}

Memory& Driver::Find(double number, size_t offset, size_t bytes, const char* call) {
  Memory& found = Buffer(number);
  if (bytes > found.bytes || offset > found.bytes - bytes)
    Refuse(call, "offset " + std::to_string(offset) + " and " + std::to_string(bytes) + " bytes leave a buffer of " +
                     std::to_string(found.bytes));
  return found;
}

cl_mem Driver::Within(double number, size_t offset, size_t bytes, const char* call) {
  return Use(Find(number, offset, bytes, call));
}

cl_mem Driver::Use(Memory& memory) {
  if (const Mark copied = std::exchange(memory.copied, nullptr); !IsOver(copied)) {
    const cl_event event = copied.get();
    Check(cl.EnqueueMarkerWithWaitList(queue_, 1, &event, nullptr), "clEnqueueMarkerWithWaitList");
  }
  memory.used = batch_;
  return memory.memory;
}

Mark Driver::Used(const Memory& memory) {
  for (const auto& [batch, mark] : running_)
    if (batch >= memory.used) return IsOver(mark) ? nullptr : mark;
  return nullptr;
}

cl_command_queue Driver::Copies() {
  if (copies_ == nullptr) {
    cl_int code = CL_SUCCESS;
    copies_ = cl.CreateCommandQueue(context_, device_, 0, &code);
    if (code != CL_SUCCESS) copies_ = nullptr;
  }
  return copies_ == nullptr ? queue_ : copies_;
}

Driver::Lane Driver::LaneFor(Memory& memory, bool beside) {
  const cl_command_queue queue = beside ? Copies() : queue_;
  if (queue == queue_) {
    Use(memory);
    return {queue, nullptr};
  }
  Lane lane{queue, Used(memory)};
  lane.event = lane.after.get();
  return lane;
}

void Driver::Copied(Memory& memory, const Lane& lane, cl_event event) {
  if (lane.queue == queue_) EndBatch(event);
  else lastCopy_ = memory.copied = Hold(event);
  Check(cl.Flush(lane.queue), "clFlush");
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
  Memory& memory = Find(buffer, offset, bytes, "upload");
  if (bytes == 0) return;
  const bool idle = Idle();
  const Lane lane = LaneFor(memory, !idle);
  const cl_event* after = lane.after == nullptr ? nullptr : &lane.event;
  cl_event event = nullptr;
  if (bytes >= kDirectBytes && (*staged_ + bytes > kMostStaged || idle)) {
    if (unified_) {
      cl_int code = CL_SUCCESS;
      void* mapped = cl.EnqueueMapBuffer(lane.queue, memory.memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, offset, bytes,
                                         lane.Count(), after, nullptr, &code);
      Check(code, "clEnqueueMapBuffer");
      std::memcpy(mapped, data, bytes);
      Check(cl.EnqueueUnmapMemObject(lane.queue, memory.memory, mapped, 0, nullptr, &event), "clEnqueueUnmapMemObject");
    } else {
      Check(cl.EnqueueWriteBuffer(lane.queue, memory.memory, CL_TRUE, offset, bytes, data, lane.Count(), after, &event),
            "clEnqueueWriteBuffer");
    }
    Copied(memory, lane, event);
    return;
  }
  void* copy = std::malloc(bytes);
  if (copy == nullptr) throw ClError{-6, "malloc"};
  std::memcpy(copy, data, bytes);
  const cl_int code =
      cl.EnqueueWriteBuffer(lane.queue, memory.memory, CL_FALSE, offset, bytes, copy, lane.Count(), after, &event);
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
  Copied(memory, lane, event);
}

void Driver::Read(double buffer, double from, void* into, size_t bytes) {
  const size_t offset = Whole(from, "read", "the offset");
  Memory& memory = Find(buffer, offset, bytes, "read");
  if (bytes == 0) return;
  // What waits for the last batch in any case is read behind it.
  const bool last = running_.empty() || memory.used >= running_.back().first;
  const Lane lane = LaneFor(memory, !last && !Idle());
  const cl_event* after = lane.after == nullptr ? nullptr : &lane.event;
  if (unified_ && bytes >= kDirectBytes) {
    cl_int code = CL_SUCCESS;
    void* mapped = cl.EnqueueMapBuffer(lane.queue, memory.memory, CL_TRUE, CL_MAP_READ, offset, bytes, lane.Count(), after,
                                       nullptr, &code);
    Check(code, "clEnqueueMapBuffer");
    if (lane.queue == queue_) running_.clear();
    std::memcpy(into, mapped, bytes);
    cl_event event = nullptr;
    Check(cl.EnqueueUnmapMemObject(lane.queue, memory.memory, mapped, 0, nullptr, &event), "clEnqueueUnmapMemObject");
    Copied(memory, lane, event);
  } else {
    Check(cl.EnqueueReadBuffer(lane.queue, memory.memory, CL_TRUE, offset, bytes, into, lane.Count(), after, nullptr),
          "clEnqueueReadBuffer");
    if (lane.queue == queue_) running_.clear();
  }
}

cl_event Driver::ReadLater(double buffer, double from, void* into, size_t bytes) {
  const size_t offset = Whole(from, "read", "the offset");
  Memory& memory = Find(buffer, offset, bytes, "read");
  if (bytes == 0) return Marker();
  // Large ones beside what computes later, too.
  const Lane lane = LaneFor(memory, bytes >= kDirectBytes || !Idle());
  const cl_event* after = lane.after == nullptr ? nullptr : &lane.event;
  cl_event event = nullptr;
  Check(cl.EnqueueReadBuffer(lane.queue, memory.memory, CL_FALSE, offset, bytes, into, lane.Count(), after, &event),
        "clEnqueueReadBuffer");
  Check(cl.RetainEvent(event), "clRetainEvent");
  Copied(memory, lane, event);
  return event;
}

cl_event Driver::Marker() {
  cl_event event = nullptr;
  const cl_event copy = lastCopy_.get();
  Check(cl.EnqueueMarkerWithWaitList(queue_, copy == nullptr ? 0 : 1, copy == nullptr ? nullptr : &copy, &event),
        "clEnqueueMarkerWithWaitList");
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
  // The binary of a program that runs already is not needed.
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
