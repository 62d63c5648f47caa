/** Batches: one native call enqueues them all. */
#include <cstring>
#include <utility>

#include "driver.h"

namespace {

/** The device or the driver had no room: waiting until it is idle may help. */
bool IsShortage(cl_int code) { return code == -4 || code == -5 || code == -6; }

bool Clock(cl_event event, cl_uint what, cl_ulong* time) {
  return cl.GetEventProfilingInfo(event, what, sizeof *time, time, nullptr) == CL_SUCCESS;
}

}  // namespace

void Driver::Submit(const double* cells, size_t count) {
  int64_t command = 0;
  cl_event event = nullptr;
  try {
    for (size_t at = 0; at < count; command++) {
      const size_t length = LengthOf(cells + at, count - at);
      // The event of the last command says when the batch is done.
      cl_event* last = at + length == count ? &event : nullptr;
      try {
        Enqueue(cells + at, length, last);
      } catch (const ClError& error) {
        if (!IsShortage(error.code)) throw;
        FinishAll();
        Enqueue(cells + at, length, last);
      }
      at += length;
    }
  } catch (ClError& error) {
    error.command = command;
    EndFailed();
    throw;
  } catch (...) {
    EndFailed();
    throw;
  }
  if (event != nullptr) EndBatch(event);
  Check(cl.Flush(queue_), "clFlush");
}

void Driver::EndFailed() {
  cl_event event = nullptr;
  if (cl.EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event) == CL_SUCCESS) EndBatch(event);
  cl.Flush(queue_);
}

std::vector<double> Driver::SubmitTimed(const double* cells, size_t count) {
  cl_int code = CL_SUCCESS;
  if (timed_ == nullptr) {
    timed_ = cl.CreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &code);
    Check(code, "clCreateCommandQueue");
  }
  Check(cl.Finish(queue_), "clFinish");
  if (copies_ != nullptr) Check(cl.Finish(copies_), "clFinish");
  running_.clear();
  std::swap(queue_, timed_);
  std::vector<cl_event> events;
  // CLBlast gives the event of the last of its kernels: a marker says when the first could begin.
  std::vector<cl_event> markers;
  const auto release = [&] {
    for (cl_event event : events) cl.ReleaseEvent(event);
    for (cl_event marker : markers)
      if (marker != nullptr) cl.ReleaseEvent(marker);
  };
  const auto end = [&] {
    cl.Finish(queue_);
    std::swap(queue_, timed_);
    release();
  };
  try {
    for (size_t at = 0; at < count;) {
      const size_t length = LengthOf(cells + at, count - at);
      cl_event event = nullptr;
      markers.push_back(nullptr);
      if (cells[at] == kProduct)
        Check(cl.EnqueueMarkerWithWaitList(queue_, 0, nullptr, &markers.back()), "clEnqueueMarkerWithWaitList");
      Enqueue(cells + at, length, &event);
      events.push_back(event);
      at += length;
    }
    code = cl.Finish(queue_);
  } catch (ClError& error) {
    end();
    error.command = static_cast<int64_t>(events.size());
    throw;
  } catch (...) {
    end();
    throw;
  }
  std::swap(queue_, timed_);
  std::vector<double> times;
  for (size_t i = 0; i < events.size(); i++) {
    cl_ulong start = 0, stop = 0;
    const bool known = (markers[i] == nullptr ? Clock(events[i], CL_PROFILING_COMMAND_START, &start)
                                              : Clock(markers[i], CL_PROFILING_COMMAND_END, &start)) &&
                       Clock(events[i], CL_PROFILING_COMMAND_END, &stop) && stop >= start;
    times.push_back(known ? static_cast<double>(stop - start) : -1);
  }
  release();
  Check(code, "clFinish");
  return times;
}

void Driver::Enqueue(const double* cells, size_t length, cl_event* event) {
  switch (Whole(cells[0], "submit", "the kind of a command", kProduct)) {
    case kDispatch:
      Dispatch(cells, length, event);
      return;
    case kCopy:
      Copy(CopyOf(cells, length), event);
      return;
    case kFill:
      Fill(FillOf(cells, length), event);
      return;
    case kProduct:
      Expect(length, kProductCells, "product");
      Multiply(cells, event);
      return;
    default:
      Refuse("submit", "there is no such command");
  }
}

void Driver::Fill(const FillCommand& fill, cl_event* event) {
  const size_t offset = fill.offset, bytes = fill.bytes;
  const cl_mem memory = Within(fill.buffer, offset, bytes, "fill");
  Check(cl.EnqueueFillBuffer(queue_, memory, &fill.pattern, sizeof fill.pattern, offset, bytes, 0, nullptr, event), "clEnqueueFillBuffer");
}

void Driver::Dispatch(const double* cells, size_t length, cl_event* event) {
  if (length < 6) Refuse("dispatch", "the kernel is not said");
  Kernel* k = kernels_.Find(cells[2]);
  if (k == nullptr) Refuse("dispatch", "there is no such kernel");
  Expect(length, 6 + k->sizes.size(), "dispatch");
  size_t global[3];
  for (int axis = 0; axis < 3; axis++) {
    const size_t most = k->global[axis] / k->local[axis];
    const size_t groups = Whole(cells[3 + axis], "dispatch", "the groups", static_cast<double>(most));
    global[axis] = (groups == 0 ? most : groups) * k->local[axis];
  }
  const double* argument = cells + 6;
  for (size_t i = 0; i < k->sizes.size(); i++, argument++) {
    const size_t bytes = k->sizes[i];
    if (bytes == 0) {
      const cl_mem memory = Use(Buffer(*argument));
      Check(cl.SetKernelArg(k->kernel, static_cast<cl_uint>(i), sizeof memory, &memory), "clSetKernelArg");
    } else {
      Check(cl.SetKernelArg(k->kernel, static_cast<cl_uint>(i), bytes, argument), "clSetKernelArg");
    }
  }
  Check(cl.EnqueueNDRangeKernel(queue_, k->kernel, k->dimensions, nullptr, global, k->local, 0, nullptr, event),
        "clEnqueueNDRangeKernel");
}

/** Ranges of one buffer may overlap: those are copied through separate memory. */
void Driver::Copy(const CopyCommand& copy, cl_event* event) {
  const size_t source = copy.source, target = copy.target, bytes = copy.bytes;
  const cl_mem from = Within(copy.from, source, bytes, "copy");
  const cl_mem to = Within(copy.to, target, bytes, "copy");
  if (from != to || source + bytes <= target || target + bytes <= source) {
    Check(cl.EnqueueCopyBuffer(queue_, from, to, source, target, bytes, 0, nullptr, event), "clEnqueueCopyBuffer");
    return;
  }
  cl_int code = CL_SUCCESS;
  const cl_mem between = cl.CreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  Check(code, "clCreateBuffer");
  code = cl.EnqueueCopyBuffer(queue_, from, between, source, 0, bytes, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) code = cl.EnqueueCopyBuffer(queue_, between, to, 0, target, bytes, 0, nullptr, event);
  cl.ReleaseMemObject(between);
  Check(code, "clEnqueueCopyBuffer");
}
