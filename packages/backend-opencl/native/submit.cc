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
  size_t at = 0;
  cl_event event = nullptr;
  while (at < count) {
    try {
      size_t used = 0;
      // The event of the last command says when the batch is done.
      const bool last = at + static_cast<size_t>(cells[at + 1]) >= count;
      try {
        used = Enqueue(cells + at, count - at, last ? &event : nullptr);
      } catch (const ClError& error) {
        if (!IsShortage(error.code)) throw;
        cl.Finish(queue_);
        used = Enqueue(cells + at, count - at, last ? &event : nullptr);
      }
      at += used;
      command++;
    } catch (ClError& error) {
      error.command = command;
      cl.Flush(queue_);
      throw;
    }
  }
  if (event != nullptr) Track(event);
  Check(cl.Flush(queue_), "clFlush");
}

std::vector<double> Driver::SubmitTimed(const double* cells, size_t count) {
  cl_int code = CL_SUCCESS;
  if (timed_ == nullptr) {
    timed_ = cl.CreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &code);
    Check(code, "clCreateCommandQueue");
  }
  Check(cl.Finish(queue_), "clFinish");
  std::swap(queue_, timed_);
  std::vector<cl_event> events;
  // CLBlast gives the event of the last of its kernels: a marker says when the first could begin.
  std::vector<cl_event> markers;
  const auto release = [&] {
    for (cl_event event : events) cl.ReleaseEvent(event);
    for (cl_event marker : markers)
      if (marker != nullptr) cl.ReleaseEvent(marker);
  };
  try {
    for (size_t at = 0; at < count;) {
      cl_event event = nullptr;
      markers.push_back(nullptr);
      if (static_cast<int>(cells[at]) == kProduct)
        Check(cl.EnqueueMarkerWithWaitList(queue_, 0, nullptr, &markers.back()), "clEnqueueMarkerWithWaitList");
      at += Enqueue(cells + at, count - at, &event);
      events.push_back(event);
    }
    code = cl.Finish(queue_);
  } catch (ClError& error) {
    cl.Finish(queue_);
    std::swap(queue_, timed_);
    release();
    error.command = static_cast<int64_t>(events.size());
    throw;
  }
  std::swap(queue_, timed_);
  std::vector<double> times;
  for (size_t i = 0; i < events.size(); i++) {
    cl_ulong start = 0, end = 0;
    const bool known = (markers[i] == nullptr ? Clock(events[i], CL_PROFILING_COMMAND_START, &start)
                                              : Clock(markers[i], CL_PROFILING_COMMAND_END, &start)) &&
                       Clock(events[i], CL_PROFILING_COMMAND_END, &end) && end >= start;
    times.push_back(known ? static_cast<double>(end - start) : -1);
  }
  release();
  Check(code, "clFinish");
  return times;
}

/** One command: [kind, cells in all, ...]. Returns how many cells it took. */
size_t Driver::Enqueue(const double* cells, size_t left, cl_event* event) {
  const size_t length = left < 2 ? 0 : static_cast<size_t>(cells[1]);
  if (length < 2 || length > left) throw ClError{CL_INVALID_VALUE, "submit"};
  switch (static_cast<int>(cells[0])) {
    case kDispatch:
      return Dispatch(cells, length, event);
    case kCopy:
      if (length != 7) throw ClError{CL_INVALID_VALUE, "copy"};
      Copy(cells, event);
      return length;
    case kFill: {
      if (length != 6) throw ClError{CL_INVALID_VALUE, "fill"};
      const auto pattern = static_cast<uint32_t>(cells[5]);
      Check(cl.EnqueueFillBuffer(queue_, Buffer(cells[2]), &pattern, sizeof pattern, static_cast<size_t>(cells[3]),
                                 static_cast<size_t>(cells[4]), 0, nullptr, event),
            "clEnqueueFillBuffer");
      return length;
    }
    case kProduct:
      if (length != kProductCells) throw ClError{CL_INVALID_VALUE, "product"};
      Multiply(cells, event);
      return length;
    default:
      throw ClError{CL_INVALID_VALUE, "submit"};
  }
}

size_t Driver::Dispatch(const double* cells, size_t length, cl_event* event) {
  Kernel* k = kernels_.Find(cells[2]);
  if (k == nullptr || length != 3 + k->sizes.size()) throw ClError{CL_INVALID_VALUE, "dispatch"};
  const double* argument = cells + 3;
  for (size_t i = 0; i < k->sizes.size(); i++, argument++) {
    const size_t bytes = k->sizes[i];
    if (bytes == 0) {
      const cl_mem memory = Buffer(*argument);
      Check(cl.SetKernelArg(k->kernel, static_cast<cl_uint>(i), sizeof memory, &memory), "clSetKernelArg");
    } else {
      Check(cl.SetKernelArg(k->kernel, static_cast<cl_uint>(i), bytes, argument), "clSetKernelArg");
    }
  }
  Check(cl.EnqueueNDRangeKernel(queue_, k->kernel, k->dimensions, nullptr, k->global, k->local, 0, nullptr, event),
        "clEnqueueNDRangeKernel");
  return length;
}

/** Ranges of one buffer may overlap: those go through memory of their own. */
void Driver::Copy(const double* cells, cl_event* event) {
  const cl_mem from = Buffer(cells[2]);
  const auto source = static_cast<size_t>(cells[3]);
  const cl_mem to = Buffer(cells[4]);
  const auto target = static_cast<size_t>(cells[5]);
  const auto bytes = static_cast<size_t>(cells[6]);
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
